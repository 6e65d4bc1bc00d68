#!/usr/bin/env python3
"""Tunes the problem of each data set of test/data/wide and times the winner beside the best config of
the data, in interleaved pairs. Prints a table and keeps all rows of `autotune bench` in one file."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

WIDE = pathlib.Path(__file__).resolve().parent.parent / "test" / "data" / "wide"


def best_of(sweep):
    """The problem's options and the config that took least in a .sweep file."""
    problem, parameters, best = {}, {}, None
    for line in sweep.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "problem":
            problem = dict(word.split("=", 1) for word in words[1:])
        elif words[0] == "kernel":
            parameters[words[1]] = words[2].split(",")
        elif words[0] in parameters and len(words) == 4:  # else it failed
            if best is None or float(words[2]) < best[0]:
                values = zip(parameters[words[0]], words[1].split(","))
                best = float(words[2]), words[0] + ":" + ",".join("=".join(v) for v in values)
    shape = [f"--{name}={problem[name]}" for name in ("m", "n", "k", "dtype", "layout")]
    return [problem["family"], *shape], best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("autotune", help="the executable; its cache is that of the environment")
    parser.add_argument("json", help="file to write")
    options = parser.parse_args()
    rows, least, kept = [], None, {}
    for sweep in sorted(WIDE.glob("*.sweep")):
        problem, config = best_of(sweep)
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            for command in (["tune", *problem],
                            ["bench", *problem, "--baseline", config, "--json", file.name]):
                done = subprocess.run([options.autotune, *command], capture_output=True, text=True,
                                      timeout=120, check=False)
                if done.returncode != 0:
                    sys.exit(f"{' '.join(command)}: {done.stderr}")
            result = json.load(file)
            row = result["rows"][0]
        rows.append(row)
        kept = {name: result[name] for name in ("schema", "device")}
        least = min(least or row["speedup"], row["speedup"])
        low, high = row["speedup_ci95"]
        print(f'{sweep.stem}: {row["speedup"]:.4f} [{low:.3f}, {high:.3f}]', flush=True)
    pathlib.Path(options.json).write_text(json.dumps({**kept, "rows": rows}, indent=1) + "\n",
                                          encoding="utf-8")
    print(f"the data's best / the winner: {len(rows)} problems, least {least:.4f}")


if __name__ == "__main__":
    main()

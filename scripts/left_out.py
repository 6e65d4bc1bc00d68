#!/usr/bin/env python3
"""What answers for untuned problems lose: compares `autotune bench --baseline cublas --json A` with
the same and --left-out. Both are held against cuBLAS, so that clocks that drift between the two runs
do not count."""
import argparse
import json
import math


def rows(name):
    with open(name, encoding="utf-8") as file:
        found = json.load(file)["rows"]
    return {json.dumps(row["problem"]): row for row in found if row["median_us"] and row["speedup"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tuned")
    parser.add_argument("left_out")
    options = parser.parse_args()
    tuned, left_out = rows(options.tuned), rows(options.left_out)
    lost = []
    print("| problem | answered from | us | tuned us | times as long |")
    print("|---|---|---|---|---|")
    for key, answer in left_out.items():
        if key not in tuned or tuned[key]["match"] != "exact":
            continue
        winner, p = tuned[key], answer["problem"]
        lost.append(winner["speedup"] / answer["speedup"])
        print(f'| {p["m"]}x{p["n"]}x{p["k"]} {p["dtype"]} {p["layout"]} | {answer["match"]} | '
              f'{answer["median_us"]:.4g} | {winner["median_us"]:.4g} | {lost[-1]:.3f} |')
    if not lost:
        parser.exit(1, "no problem is tuned in the first file and answered in the second\n")
    mean = math.exp(sum(map(math.log, lost)) / len(lost))
    print(f"| geometric mean, worst | | | | {mean:.3f}, {max(lost):.3f} |")


if __name__ == "__main__":
    main()

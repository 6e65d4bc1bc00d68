#!/usr/bin/env python3
"""Prints the JSON files of `autotune bench --baseline cublas` as one Markdown table, for README.md.

usage: bench_table.py FILE...
"""
import json
import sys


def row(entry):
    p = entry["problem"]
    base = entry["baseline"]
    lo, hi = entry["speedup_ci95"]
    name = f'{p["m"]}x{p["n"]}x{p["k"]} {p["dtype"]} {p["layout"]}'
    config = entry["config"].partition(":")
    tile = dict(pair.split("=") for pair in config[2].split(","))
    shape = f'{config[0]} {tile["block_m"]}x{tile["block_n"]}x{tile["block_k"]}, {tile["stages"]} stages'
    return (
        f'| {name} | {shape} | {entry["median_us"]:.4g} | {entry["tflops"]:.4g} | '
        f'{entry["floor_percent"]:.0f} % | {base["median_us"]:.4g} | '
        f'{entry["speedup"]:.3f} [{lo:.3f}, {hi:.3f}] |'
    )


def main(files):
    if not files:
        sys.exit(__doc__)
    print("| problem | winner | us | TFLOP/s | of the floor | cuBLAS us | cuBLAS / ours [95 %] |")
    print("|---|---|---|---|---|---|---|")
    for name in files:
        with open(name, encoding="utf-8") as file:
            document = json.load(file)
        for entry in document["rows"]:
            print(row(entry))
        print(f'| geometric mean, least | | | | | | {document["geomean_speedup"]:.3f}, '
              f'{document["min_speedup"]:.3f} |')


if __name__ == "__main__":
    main(sys.argv[1:])

#!/usr/bin/env python3
"""Prints the JSON files of `autotune bench --baseline cublas` as one Markdown table: a row for each
problem, for the READMEs in test/data, or with --means one for each file, for README.md."""
import argparse
import json
import math
import os
import sys


def shape(config):
    """"wgmma 128x256x64, 4 stages"; of an MLP, both kernels'."""
    if " + " in config:
        return " + ".join(shape(part) for part in config.split(" + "))
    kernel, _, values = config.partition(":")
    tile = dict(pair.split("=") for pair in values.split(","))
    return f'{kernel} {tile["block_m"]}x{tile["block_n"]}x{tile["block_k"]}, {tile["stages"]} stages'


def sizes(p):
    if p["family"] == "geglu_mlp":
        return f'mlp {p["tokens"]} tokens {p["hidden"]}x{p["intermediate"]}'
    plain = f'{p["m"]}x{p["n"]}x{p["k"]}'
    return plain if p["family"] == "gemm" else f'{p["family"]} {plain}'


def row(entry):
    p = entry["problem"]
    base = entry["baseline"]
    lo, hi = entry["speedup_ci95"]
    return (
        f'| {sizes(p)} {p["dtype"]} {p["layout"]} | {shape(entry["config"])} | '
        f'{entry["median_us"]:.4g} | {entry["tflops"]:.4g} | '
        f'{entry["floor_percent"]:.0f} % | {base["median_us"]:.4g} | '
        f'{entry["speedup"]:.3f} [{lo:.3f}, {hi:.3f}] |'
    )


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def means_row(name, entries):
    ratios = [entry["speedup"] for entry in entries]
    floor = mean([entry["floor_percent"] for entry in entries])
    return f"| {name} | {len(entries)} | {mean(ratios):.3f} | {min(ratios):.3f} | {floor:.0f} % |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--min-m", type=int, default=0, metavar="N",
                        help="only problems with at least N rows; the means are theirs")
    parser.add_argument("--means", action="store_true", help="one row for each file")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    if options.means:
        print("| problems | | cuBLAS / ours, geometric mean | least | of the floor |")
        print("|---|---|---|---|---|")
    else:
        print("| problem | winner | us | TFLOP/s | of the floor | cuBLAS us | cuBLAS / ours [95 %] |")
        print("|---|---|---|---|---|---|---|")
    for name in options.files:
        with open(name, encoding="utf-8") as file:
            entries = [e for e in json.load(file)["rows"]
                       if e["problem"].get("m", e["problem"].get("tokens")) >= options.min_m
                       and e.get("speedup")]
        if not entries:
            sys.exit(f"{name}: no row with a baseline")
        if options.means:
            print(means_row(os.path.splitext(os.path.basename(name))[0], entries))
            continue
        for entry in entries:
            print(row(entry))
        ratios = [entry["speedup"] for entry in entries]
        print(f"| geometric mean, least | | | | | | {mean(ratios):.3f}, {min(ratios):.3f} |")


if __name__ == "__main__":
    main()

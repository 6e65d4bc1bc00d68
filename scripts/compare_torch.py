#!/usr/bin/env python3
"""Times the GEGLU-MLP problems of a suite, y = (act(x Wg) .* (x Wu)) Wd, in PyTorch (eager and
compiled) beside ours, in one process, after both were held against fp64. Ours are the winners that
`autotune tune --suite geglu_mlp` left in the cache. Ends with status 1 where ours is wrong or
fails, 2 where nothing can be compared."""
import argparse
import datetime
import functools
import json
import math
import os
import statistics
import subprocess
import sys

from autotune_library import Library, c_problem, describe, read_suite
from torch_rounds import GRAPH_MOST_US, cold_rounds, graph_rounds, summary

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The relative error that ours may have.
BOUNDS = {"bf16": 1e-2, "fp16": 2e-3, "tf32": 2e-3, "fp32": 2e-5}
SAMPLE_ROWS = 128
MEAN_FROM_HIDDEN = 3072
# The forms of torch_forms(), eager and compiled.
KINDS = ("eager", "compile", "eager joined", "compile joined")


def first_line(error):
    return str(error).strip().partition("\n")[0]


def activate(name):
    return {"gelu_tanh": lambda gate: F.gelu(gate, approximate="tanh"), "gelu_erf": F.gelu,
            "silu": F.silu, "relu": F.relu}[name]


def product_of(p):
    """A Linear layer keeps [out, in]."""
    return F.linear if p["layout"] == "tn" else torch.matmul


def operands(p):
    """x, gate, up, down; N(0, 1), the weights so that products are too."""
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(p["dtype"], torch.float32)
    generator = torch.Generator("cuda").manual_seed(1)

    def normal(rows, columns, scale):
        values = torch.randn(rows, columns, device="cuda", generator=generator)
        return values.mul_(scale).to(dtype)

    def weights(fan_in, fan_out):
        shape = (fan_out, fan_in) if p["layout"] == "tn" else (fan_in, fan_out)
        return normal(*shape, fan_in ** -0.5)

    hidden, intermediate = p["hidden"], p["intermediate"]
    return (normal(p["tokens"], hidden, 1.0), weights(hidden, intermediate),
            weights(hidden, intermediate), weights(intermediate, hidden))


def our_contender(library, problem, *tensors):
    """A function that launches the kernel on x, gate, up, down and y."""
    kernel, size = library.kernel(problem)
    space = torch.zeros(size, dtype=torch.uint8, device="cuda")

    def launch():
        stream = torch.cuda.current_stream().cuda_stream
        library.launch(kernel, [each.data_ptr() for each in tensors], stream, space.data_ptr())

    return launch


def torch_forms(p, x, gate, up, down):
    """What a user may write, each with its arguments: three products, or the first two as one, for
    which the weights must be repacked."""
    product, act = product_of(p), activate(p["activation"])

    def apart(x, gate, up, down):
        return product(act(product(x, gate)) * product(x, up), down)

    def joined(x, both, down):
        gate, up = product(x, both).chunk(2, dim=-1)
        return product(act(gate) * up, down)

    both = torch.cat((gate, up), dim=0 if p["layout"] == "tn" else 1)
    return {"": (apart, (x, gate, up, down)), " joined": (joined, (x, both, down))}


def torch_contenders(p, tensors, with_compile):
    """Functions by name, "eager", "eager joined", "compile", ...; and why others cannot run."""
    found, errors = {}, {}
    for suffix, (form, arguments) in torch_forms(p, *tensors).items():
        found["eager" + suffix] = functools.partial(form, *arguments)
        if not with_compile:
            continue
        try:
            compiled = torch.compile(form, mode="max-autotune-no-cudagraphs", dynamic=False)
            compiled(*arguments)
            found["compile" + suffix] = functools.partial(compiled, *arguments)
        except Exception as error:  # its compiler's, of many kinds
            errors["compile" + suffix] = first_line(error)
    return found, errors


def reference(p, rows, x, gate, up, down):
    """The rows in fp64, but for the intermediate, which is rounded as kernels round it."""
    product, act = product_of(p), activate(p["activation"])
    wide = x[rows].double()
    between = act(product(wide, gate.double())) * product(wide, up.double())
    return product(between.to(x.dtype).double(), down.double())


def distance(y, right):
    """Relative to `right`, Frobenius."""
    return float((y.double() - right.double()).norm() / right.double().norm())


def errors_of(p, tensors, contenders, y):
    """By contender, against the reference on some rows; of ours against eager on all of them."""
    order = torch.randperm(p["tokens"], generator=torch.Generator().manual_seed(2))
    rows = order[:SAMPLE_ROWS].cuda()
    right = reference(p, rows, *tensors)
    y.fill_(math.nan)
    contenders["ours"]()
    found = {"ours": distance(y[rows], right)}
    for name, run in contenders.items():
        if name != "ours":
            found[name] = distance(run()[rows], right)
    found["ours against eager"] = distance(y, contenders["eager"]())
    return found


def compare(library, options, row):
    """Adds to a row of the JSON file what is found for its problem."""
    p = row["problem"]
    torch.compiler.reset()
    torch.cuda.empty_cache()
    torch.set_float32_matmul_precision("high" if p["dtype"] == "tf32" else "highest")
    problem = c_problem(p)
    row.update(library.answer(problem))
    tensors = operands(p)
    y = torch.empty_like(tensors[0])
    contenders = {"ours": our_contender(library, problem, *tensors, y)}
    others, row["compile_errors"] = torch_contenders(p, tensors, not options.no_compile)
    contenders.update(others)
    row["errors"] = errors_of(p, tensors, contenders, y)
    bound = BOUNDS[p["dtype"]]
    ours, whole = row["errors"]["ours"], row["errors"]["ours against eager"]
    if not (ours <= bound and whole <= 2 * bound):  # eager may be as far off on the other side
        raise RuntimeError(f"wrong: off by {ours:.1e}, at most {bound} is right; by {whole:.1e} "
                           f"from eager, at most {2 * bound}")
    row["cold"] = summary(cold_rounds(contenders))
    flops = 6.0 * p["tokens"] * p["hidden"] * p["intermediate"]
    row["tflops"] = flops / row["cold"]["ours_us"] * 1e-6
    if options.graphs and row["cold"]["ours_us"] <= GRAPH_MOST_US:
        try:
            row["graph"] = summary(graph_rounds(contenders))
        except RuntimeError as error:  # not everything can be captured
            row["graph_error"] = first_line(error)


def ratio_text(found):
    if found is None:
        return "-"
    return f'{found["ratio"]:.3f} [{found["ci95"][0]:.3f}, {found["ci95"][1]:.3f}]'


def us_text(found):
    return "-" if found is None else f'{found["median_us"]:.4g}'


def row_text(row, graphs):
    cells = [describe(row["problem"]), row.get("match", "-")]
    if "failed" in row:
        return f'| {" | ".join(cells)} | {row["failed"]} |'
    cold = row["cold"]
    cells += [f'{cold["ours_us"]:.4g}', f'{row["tflops"]:.4g}']
    for name in KINDS:
        found = cold["others"].get(name)
        cells.append(f"{us_text(found)}: {ratio_text(found)}")
    cells.append(", ".join(f"{row['errors'][name]:.1e}" if name in row["errors"] else "-"
                           for name in ("ours", "eager", "compile")))
    if graphs:
        hot = row.get("graph")
        cells.append("-" if hot is None else "; ".join(
            [f'{hot["ours_us"]:.4g}'] + [ratio_text(hot["others"].get(name)) for name in KINDS]))
    return f'| {" | ".join(cells)} |'


def header_text(graphs):
    names = ["problem", "match", "ours us", "TFLOP/s", *(f"{name} us: / ours [95 %]" for name in KINDS),
             "errors: ours, eager, compile"]
    names += ["in a graph: ours us; the same ratios"] if graphs else []
    return f'| {" | ".join(names)} |\n|{"---|" * len(names)}'


def mean_of(rows, kind):
    """Geometric, None for none."""
    found = [row["cold"]["others"][kind]["ratio"] for row in rows
             if kind in row.get("cold", {}).get("others", {})
             and row["problem"]["hidden"] >= MEAN_FROM_HIDDEN]
    return statistics.geometric_mean(found) if found else None


def environment():
    ask = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        driver = None
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
            "cuda": torch.version.cuda, "driver": driver,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}


def write_json(path, about, rows):
    """Whole or not at all: a run that is interrupted keeps what it has."""
    means = {kind: mean_of(rows, kind) for kind in KINDS}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump({**about, "geometric_means": means, "rows": rows}, file, indent=1)
    os.replace(path + ".part", path)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=os.path.join(ROOT, "build/release/libautotune.so"),
                        metavar="PATH", help="libautotune.so (default: that of build/release)")
    parser.add_argument("--cache", metavar="FILE", help="tuned winners (default: the user's cache)")
    parser.add_argument("--suite", default="geglu_mlp", metavar="NAME|FILE")
    parser.add_argument("--problems", metavar="N,N", help="only these of the suite, from 0")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--graphs", action="store_true",
                        help=f"time problems of up to {GRAPH_MOST_US} us in CUDA graphs as well")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    path = options.suite if os.path.exists(options.suite) else \
        os.path.join(ROOT, "configs/suites", options.suite + ".yaml")
    try:
        with open(path, encoding="utf-8") as file:
            problems = read_suite(file.read())
        if options.problems:
            problems = [problems[int(index)] for index in options.problems.split(",")]
    except (OSError, ValueError, IndexError) as error:
        parser.exit(2, f"error: {path}: {error}\n")
    if torch is None or not torch.cuda.is_available():
        parser.exit(2, "error: PyTorch is not installed here, or sees no GPU: nothing to compare\n")
    return parser, options, problems


def main():
    parser, options, problems = parsed()
    about, rows = environment(), []
    try:
        library = Library(options.library, options.cache, torch.cuda.current_device())
    except (OSError, RuntimeError, AttributeError) as error:
        parser.exit(2, f"error: {error}\n")
    if library.message():
        print(library.message(), file=sys.stderr)
    print(header_text(options.graphs))
    for p in problems:
        rows.append({"problem": p})
        try:
            compare(library, options, rows[-1])
        except RuntimeError as error:  # a wrong result, the library's refusal, the GPU's error
            rows[-1]["failed"] = first_line(error)
        print(row_text(rows[-1], options.graphs), flush=True)
        if options.json:
            write_json(options.json, about, rows)
    means = ["-" if mean is None else f"{mean:.3f}" for mean in (mean_of(rows, k) for k in KINDS)]
    print(f'| geometric mean, hidden from {MEAN_FROM_HIDDEN} | | | | {" | ".join(means)} | |'
          + (" |" if options.graphs else ""))
    print(f'\njoined: gate and up repacked into one matrix, which ours does without. '
          f'{", ".join(f"{k} {v}" for k, v in about.items())}\n')
    for row in rows:
        known = [row[name] for name in ("match", "from_problem", "config") if row.get(name)]
        print(f'- {describe(row["problem"])}: {", ".join(known) or "no answer"}')
        for name, error in row.get("compile_errors", {}).items():
            print(f"  {name}: {error}")
    return 1 if any("failed" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures what a GPU's file in configs/gpus keeps under `measured`, and prints it: an empty launch,
reading from DRAM with a cold L2 (the fastest of a few ways), and bf16 products of normal-distributed
inputs by cuBLAS in bursts too short for the power limit (the fastest of a few sizes); medians
between CUDA events. Needs PyTorch with Triton."""
import statistics
import sys
import time

from torch_rounds import cold_rounds

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as missing:
    sys.exit(f"measure_gpu.py needs PyTorch with Triton: {missing}")

# From small problems to large, with the weights of common language models among them.
MIB = (1, 8, 32, 86, 112, 129, 235, 1024)
# Elements of a block, and warps: which of them reads fastest differs with the size.
SHAPES = ((1024, 4), (2048, 4), (4096, 8), (8192, 8))
EXTENTS = (2048, 4096, 8192)
BURSTS, PAUSE_S = 20, 0.2


@triton.jit
def nothing():
    pass


@triton.jit
def read(source, out, BLOCK: tl.constexpr):
    values = tl.load(source + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    found = tl.max(values, axis=0)
    if found > 0:  # never, as all are zero, but the compiler does not know
        tl.store(out, found)


def cold_us(run):
    return statistics.median(cold_rounds({"ours": run})["ours"])


def read_us(mib, out):
    source = torch.zeros(mib << 18, dtype=torch.int32, device="cuda")
    times = []
    for block, warps in SHAPES:
        grid = (source.numel() // block,)
        times.append(cold_us(lambda: read[grid](source, out, block, num_warps=warps)))
    return min(times)


def matrix_tflops(extent):
    a, b = (torch.randn(extent, extent, device="cuda").to(torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(BURSTS):
        time.sleep(PAUSE_S)
        torch.matmul(a, b.T)  # the clock is up again
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.matmul(a, b.T)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * extent ** 3 / statistics.median(times) / 1e12


def main():
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    print(f"# {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}")
    print("measured:")
    print(f"  launch_us: {cold_us(lambda: nothing[(1,)]()):.3g}")
    rates = {extent: matrix_tflops(extent) for extent in EXTENTS}
    at = max(rates, key=rates.get)
    print(f"  f16_bf16_tflops: {rates[at]:.0f}  # at {at}^3")
    print("  cold_read_us:")
    for mib in MIB:
        print(f"    - {{mib: {mib}, us: {read_us(mib, out):.4g}}}")


if __name__ == "__main__":
    main()

#!/usr/bin/env bash
# From a fresh clone to the main job: installs what is missing, builds, and tunes a GEMM, or, where
# there is no GPU, plans it for an H200 and checks a sample of the plan with the compiler.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

problem=(gemm --m 4096 --n 4096 --k 4096)
autotune=build/release/bin/autotune

need_build_packages
find_cuda
build_preset release autotune_cli
say "CUDA: $CUDA_WHY"

find_gpu
if [ -n "$GPU_NAME" ]; then
  say "Tuning: $GPU_WHY."
  command=("$autotune" tune "${problem[@]}")
else
  say "Planning for an NVIDIA H200, not tuning: $GPU_WHY."
  command=("$autotune" plan "${problem[@]}" --device nvidia-h200 --compile 16 --audit 16)
fi
say "\$ ${command[*]}"
exec "${command[@]}"

#!/usr/bin/env bash
# Builds and runs every test that this machine can run; ends with ctest's summary.
# Arguments go to ctest: `scripts/test.sh -L unit`, `scripts/test.sh -R cache`.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_build_packages
find_cuda
build_preset release
say "CUDA: $CUDA_WHY"
find_gpu
if [ -n "$GPU_NAME" ]; then
  say "GPU tests run: $GPU_WHY."
else
  say "GPU tests are skipped: $GPU_WHY."
fi
exec ctest --preset release -j "$(nproc)" "$@" </dev/null

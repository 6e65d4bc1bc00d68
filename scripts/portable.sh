#!/usr/bin/env bash
# Builds build/portable/bin/autotune, the one file to copy to a GPU node, and checks that it needs
# nothing there but the C library (and, opened at run time, the driver and NVRTC).
# Arguments are further targets to build that way, such as gpu_tests or libautotune.so.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_build_packages
find_cuda
have strip || need_packages binutils
build_preset portable autotune_cli "$@"
for name in autotune "$@"; do
  binary=build/portable/bin/$name
  strip "$binary"
  scripts/check_portable.sh "$binary"
done

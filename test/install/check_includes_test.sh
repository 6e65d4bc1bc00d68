#!/usr/bin/env bash
# check_includes_test.sh SOURCE: the source tree keeps the rules about includes, and the check sees
# every kind of violation.
set -euo pipefail
check=$1/scripts/check_includes.sh
bash "$check" "$1"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{kernels/gemm,search,cache,autotune/{gpu,io,cli,lookup,worker,tune}}
echo '#include "autotune/types.h"' >"$tree/kernels/a.h"
echo '#include "kernels/a.h"' >"$tree/search/a.h"
echo '#include "search/a.h"' >"$tree/autotune/tune/a.h"
echo '#include <cuda.h>' >"$tree/autotune/gpu/a.cc"
bash "$check" "$tree"

failures=0
# refuses FILE INCLUDE: the check fails on INCLUDE in FILE, and names the file.
refuses() {
  local file=$tree/$1 output
  printf '#include %s\n' "$2" >"$file"
  if output=$(bash "$check" "$tree" 2>&1) || ! grep -q "^$1:1: includes ${2//[\"<>]/}" <<<"$output"; then
    echo "not seen: $1 includes $2; the check printed: $output"
    failures=$((failures + 1))
  fi
  rm "$file"
}
refuses kernels/b.h '"search/a.h"'
refuses kernels/b.h '"autotune/tune/a.h"'
refuses search/b.cc '"cache/a.h"'
refuses search/b.cc '"autotune/io/a.h"'
refuses cache/b.cc '"search/a.h"'
refuses cache/b.cc '"autotune/gpu/a.h"'
refuses kernels/b.cc '<cuda.h>'
refuses autotune/tune/b.cc '<cublasLt.h>'
refuses autotune/worker/b.cc '<nvrtc.h>'
refuses autotune/worker/b.cc '"autotune/gpu/a.h"'
refuses autotune/lookup/b.cc '"autotune/tune/a.h"'
refuses autotune/lookup/b.cc '<yaml-cpp/yaml.h>'
refuses autotune/tune/b.cc '"autotune/cli/a.h"'
refuses autotune/tune/b.cc '<sqlite3.h>'
refuses autotune/io/b.cc '<CLI/CLI.hpp>'
refuses autotune/io/b.cc '"../tune/a.h"'
refuses autotune/autotune.h '"kernels/a.h"'
refuses autotune/session.h '"cache/a.h"'
refuses autotune/c_api.h '"autotune/lookup/a.h"'
refuses kernels/gemm/b.cuh '<cuda_fp16.h>'
refuses kernels/gemm/b.cuh '"kernels/gemm/a.cuh"'
[ "$failures" -eq 0 ]

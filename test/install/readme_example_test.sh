#!/usr/bin/env bash
# readme_example_test.sh SOURCE BUILD: installs the build into a folder of its own, builds every
# program of the READMEs, C++ and C, against that package, as a user would, and runs it.
set -euo pipefail
source_dir=$1
build_dir=$2
work=$build_dir/readme_example
rm -rf "$work"
mkdir -p "$work/program"

mapfile -t programs < <(awk -v FOLDER="$work/program" -f "$source_dir/test/install/readme_blocks.awk" \
  "$source_dir/README.md" "$source_dir/autotune/README.md")
[ "${programs[*]}" = "example_1.cc example_2.c" ] || { echo "found: ${programs[*]}"; exit 1; }
cp "$source_dir/test/install/consumer.cmake" "$work/program/CMakeLists.txt"

cmake --install "$build_dir" --prefix "$work/prefix" >"$work/log"
cuda_include=$(sed -n 's/^AUTOTUNE_CUDA_H:PATH=//p' "$build_dir/CMakeCache.txt")
cmake -S "$work/program" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCUDA_INCLUDE=$cuda_include" >>"$work/log" 2>&1 &&
  cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

source "$source_dir/scripts/lib.sh"
find_gpu
for program in "${programs[@]}"; do
  status=0
  output=$("$work/build/${program%.*}" 2>&1) || status=$?
  printf '%s printed, with status %s:\n%s\n' "$program" "$status" "$output"
  if [ -n "$GPU_NAME" ] || [ "${AUTOTUNE_REQUIRE_GPU:-0}" = 1 ]; then
    # A row of 4096 ones times a column of 4096 ones.
    [ "$status" -eq 0 ] && grep -q 'c\[0\] = 4096$' <<<"$output" || exit 1
  else
    # Without a GPU the library must say so, in words, and not crash.
    [ "$status" -eq 1 ] && grep -qi 'gpu' <<<"$output" || exit 1
  fi
done
if [ -z "$GPU_NAME" ]; then
  echo "SKIPPED: ${programs[*]}: built, and refuse politely; running them needs a GPU: $GPU_WHY"
fi

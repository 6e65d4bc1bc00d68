#!/usr/bin/env bash
# readme_example_test.sh SOURCE BUILD: installs the build into a folder of its own, builds the C++
# example of README.md against that package, as a user would, and runs it.
set -euo pipefail
source_dir=$1
build_dir=$2
work=$build_dir/readme_example
rm -rf "$work"
mkdir -p "$work/program"

awk '/^```cpp$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$source_dir/README.md" \
  >"$work/program/example.cc"
grep -q 'int main' "$work/program/example.cc" || { echo "README.md holds no program"; exit 1; }
cp "$source_dir/test/install/consumer.cmake" "$work/program/CMakeLists.txt"

cmake --install "$build_dir" --prefix "$work/prefix" >"$work/log"
cuda_include=$(sed -n 's/^AUTOTUNE_CUDA_H:PATH=//p' "$build_dir/CMakeCache.txt")
cmake -S "$work/program" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_PREFIX_PATH=$work/prefix" "-DCUDA_INCLUDE=$cuda_include" >>"$work/log" 2>&1 &&
  cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

status=0
output=$("$work/build/example" 2>&1) || status=$?
printf 'The example printed, with status %s:\n%s\n' "$status" "$output"

source "$source_dir/scripts/lib.sh"
find_gpu
if [ -n "$GPU_NAME" ] || [ "${AUTOTUNE_REQUIRE_GPU:-0}" = 1 ]; then
  # A row of 4096 ones times a column of 4096 ones.
  [ "$status" -eq 0 ] && grep -q 'c\[0\] = 4096$' <<<"$output" || exit 1
else
  # Without a GPU the library must say so, in words, and not crash.
  [ "$status" -eq 1 ] && grep -qi 'gpu' <<<"$output" || exit 1
  echo "SKIPPED: the example is built and refuses politely; running it needs a GPU: $GPU_WHY"
fi

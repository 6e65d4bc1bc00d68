#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs each libFuzzer target of test/fuzz (or those named) for that
# long, as many at a time as there are cores. A finding is a failure; its input is kept in
# build/fuzz/found, and what was learned in build/fuzz/corpus.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
need_build_packages
need_clang
find_cuda
build_preset asan fuzzers

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for file in test/fuzz/*.cc; do targets+=("$(basename "$file" .cc)"); done
fi

# fuzz TARGET: one at a time; the end of its log where it finds something.
fuzz() {
  local name=$1 work=build/fuzz/corpus/$1 found=build/fuzz/found/$1- log=build/logs/fuzz_$1.log
  local seeds=()
  mkdir -p "$work" build/fuzz/found
  case $name in
    yaml) seeds=(configs/gpus configs/spaces configs/suites) ;;
    import | config | sweep) seeds=("test/fuzz/seeds/$name") ;;
  esac
  if build/asan/bin/fuzz_"$name" "$work" "${seeds[@]}" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=2048 -artifact_prefix="$found" -print_final_stats=1 >"$log" 2>&1 </dev/null; then
    say "fuzz $name: $(awk '/number_of_executed_units/ {print $2}' "$log") inputs, no finding"
  else
    tail -n 40 "$log" >&2
    say "error: fuzz $name: a finding; the whole log is $log"
    return 1
  fi
}

mkdir -p build/logs
failures=0
running=0
for name in "${targets[@]}"; do
  [ -x "build/asan/bin/fuzz_$name" ] || die "no fuzz target $name in test/fuzz"
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || failures=$((failures + 1))
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
  wait -n || failures=$((failures + 1))
  running=$((running - 1))
done
[ "$failures" -eq 0 ] || die "$failures fuzz targets found something"

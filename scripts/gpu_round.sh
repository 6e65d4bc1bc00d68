#!/usr/bin/env bash
# A whole round on a machine with a GPU, from files that were built elsewhere (scripts/portable.sh
# gpu_tests): needs nothing there but the driver and NVRTC. Logs and JSON go into OUT.
#   gpu_round.sh OUT [PART...]                     those named, else --tests --sanitize --tune --bench
#   gpu_round.sh OUT --time CONFIGS [OPTION...]    times each line of the file CONFIGS on one problem
# Parts:
#   --tests      GPU tests, where a missing GPU is a failure
#   --sanitize   compute-sanitizer: memcheck and synccheck on a spread of configs, racecheck on a few
#                small launches
#   --tune       tunes the suite into OUT/cache.db, for each of VARIANTS
#   --bench      times the suite's winners beside cuBLAS, for each of VARIANTS
#   --search     the suite tuned twice from scratch and the winners beside each other, again with
#                the code there, the answers for problems as if they had never been tuned, and winners
#                beside the best of the wide data
#   --export     the winners of OUT/cache.db as OUT/tuned/<gpu>.yaml, for configs/tuned
#   --endurance  1000 launches of every winner, each bit-equal to the first: of configs/tuned, or of
#                those that --export left in OUT; in several processes
#   --sustain    two problems for 2 s each without a pause beside cuBLAS
#   --hot        the same two tuned and timed in hot mode, in a loop
#   --startup    what a program waits for the library (scripts/portable.sh session_benchmark)
# Environment: SUITE (gemm), FAMILY (gemm; of --time), VARIANTS (bf16:tn; a list of DTYPE:LAYOUT),
# BUDGET (seconds of tuning per problem, 20), PATIENCE (of tuning; the strategy's own), PART_LIMIT
# (seconds per part, 540), BIN (build/portable/bin). Each part runs though one before it failed.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2

out=${1:?usage: gpu_round.sh OUT [--tests] [--sanitize] [--tune] [--bench] | OUT --time CONFIGS ...}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
bin=$(cd "${BIN:-build/portable/bin}" && pwd) || exit 2
suite=${SUITE:-gemm}
limit=${PART_LIMIT:-540}
export AUTOTUNE_CACHE=$out/cache.db AUTOTUNE_WORKER=$bin/autotune
failed=()

# part NAME COMMAND...: within the time limit; what it prints is shown and kept.
part() {
  local name=$1 begin=$SECONDS rc=0
  shift
  echo "== $name"
  timeout --kill-after=10 "$limit" "$@" 2>&1 </dev/null | tee "$out/$name.log"
  rc=${PIPESTATUS[0]}
  echo "== $name: status $rc, $((SECONDS - begin)) s"
  [ "$rc" -eq 0 ] || failed+=("$name")
}

# search_part NAME CACHE COMMAND [OPTION...]: on the suite, with that cache of OUT.
search_part() {
  local name=$1 cache=$2 command=$3
  shift 3
  part "$name" env AUTOTUNE_CACHE="$out/$cache.db" "$bin/autotune" "$command" --suite "$suite" "$@" \
    --json "$out/$name.json"
}

search() {
  if [ -e "$AUTOTUNE_CACHE" ]; then
    echo "--search begins with an empty cache, and $AUTOTUNE_CACHE is there: give another OUT"
    failed+=(search)
    return
  fi
  search_part tune_from_empty cache tune --from-scratch
  search_part tune_second second tune --from-scratch
  for i in 1 2 3; do
    search_part "bench_two_runs_$i" cache bench --baseline "$out/second.db"
  done
  search_part bench cache bench --baseline cublas
  search_part bench_left_out cache bench --baseline cublas --left-out
  part left_out python3 scripts/left_out.py "$out/bench.json" "$out/bench_left_out.json"
  # What the first of these compiles, the second finds.
  search_part tune_again cache tune --fresh --from-scratch
  search_part tune_with_code cache tune --fresh --from-scratch
  part beside_wide python3 scripts/beside_wide.py "$bin/autotune" "$out/beside_wide.json"
}

# A process for each file of tests, all at the same time.
sanitize() {
  local tool=$1 tag='\[(spread|race)\]' selection='[#@][spread],[#@][race]'
  if [ "$tool" = racecheck ]; then
    tag='\[race\]' selection='[#@][race]~[stalls_racecheck]'
    echo "SKIPPED under racecheck: gpu_tests [stalls_racecheck] (kernels/gemm/NOTES.md, Measuring)"
  fi
  local files=()
  mapfile -t files < <(grep -lE "$tag" test/gpu/*_test.cc | xargs -n 1 basename -s .cc)
  part "$tool" xargs -a <(printf '%s\n' "${files[@]}") -P 0 -I @ \
    compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 --print-limit 5 \
    "$bin/gpu_tests" --filenames-as-tags --durations yes "$selection"
  # Some virtual machines let no sanitizer near the GPU; that says nothing about the kernels.
  if grep -q 'Device not supported' "$out/$tool.log"; then
    echo "SKIPPED: $tool does not support this machine's GPU"
    unset 'failed[-1]'
  fi
}

time_configs() {
  local configs=$1 config number=0
  shift
  while IFS= read -r config; do
    [ -n "$config" ] || continue
    number=$((number + 1))
    rm -f "$out/one.json"
    if timeout 60 "$bin/autotune" bench "${FAMILY:-gemm}" "$@" --config "$config" --json "$out/one.json" \
      >"$out/one.log" 2>&1 </dev/null; then
      awk -v config="$config" '
        match($0, /"(median_us|tflops|floor_percent)": *[0-9.]+/) {
          split(substr($0, RSTART, RLENGTH), pair, /": */)
          value[substr(pair[1], 2)] = pair[2]
        }
        END {
          printf "%10.2f us  %7.1f TFLOP/s  %5.1f %% of the floor  %s\n",
                 value["median_us"], value["tflops"], value["floor_percent"], config
        }' "$out/one.json"
    else
      printf 'failed: %s: %s\n' "$config" \
        "$(grep -oE '"error": *"[^"]*"' "$out/one.json" 2>/dev/null || tail -n 1 "$out/one.log")"
      failed+=("config $number")
    fi
  done <"$configs" > >(tee "$out/times.txt")
  wait $!
  echo "== fastest first"
  grep ' us ' "$out/times.txt" | sort -n | head -n 20
  return 0
}

if [ "${1:-}" = --time ]; then
  time_configs "${@:2}"
else
  [ $# -gt 0 ] || set -- --tests --sanitize --tune --bench
  for name in "$@"; do
    case $name in
      --tests) part tests env AUTOTUNE_REQUIRE_GPU=1 "$bin/gpu_tests" --durations yes ;;
      --sanitize) for tool in memcheck racecheck synccheck; do sanitize "$tool"; done ;;
      --tune | --bench)
        what=${name#--}
        options=(--budget "${BUDGET:-20}")
        [ -z "${PATIENCE:-}" ] || options+=(--patience "$PATIENCE")
        [ "$what" = tune ] || options=(--baseline cublas)
        for variant in ${VARIANTS:-bf16:tn}; do
          part "${what}_${variant/:/_}" "$bin/autotune" "$what" --suite "$suite" \
            --dtype "${variant%:*}" --layout "${variant#*:}" "${options[@]}" \
            --json "$out/${what}_${suite}_${variant/:/_}.json"
        done
        ;;
      --search) search ;;
      --export)
        mkdir -p "$out/tuned"
        part export "$bin/autotune" cache export --yaml "$out/tuned"
        ;;
      --endurance)
        exported=("$out"/tuned/*.yaml)
        [ -e "${exported[0]}" ] && export AUTOTUNE_TUNED=${exported[0]}
        part endurance env AUTOTUNE_REQUIRE_GPU=1 \
          xargs -a <(printf '%s\n' "[rings]" "*right on all - "{0..7}) -P 0 -I @ "$bin/gpu_tests" @
        # A name that no test has is no failure to all versions of Catch2.
        [ "$(grep -c 'winners endured' "$out/endurance.log")" -eq 8 ] || failed+=("endurance (parts missing in $out/endurance.log)")
        ;;
      --sustain)
        for mnk in "2048 11008 4096" "8192 8192 8192"; do
          read -r m n k <<<"$mnk"
          part "sustain_$m" "$bin/autotune" bench gemm --m "$m" --n "$n" --k "$k" \
            --baseline cublas --sustain 2 --json "$out/sustain_$m.json"
        done
        ;;
      --hot)
        for mnk in "2048 11008 4096" "8192 8192 8192"; do
          read -r m n k <<<"$mnk"
          shape=(--m "$m" --n "$n" --k "$k" --mode hot)
          part "tune_hot_$m" "$bin/autotune" tune gemm "${shape[@]}" --budget "${BUDGET:-20}"
          part "hot_$m" "$bin/autotune" bench gemm "${shape[@]}" --baseline cublas \
            --json "$out/hot_$m.json"
        done
        ;;
      --startup) part startup "$bin/session_benchmark" ;;
      *) echo "unknown part $name" >&2; exit 2 ;;
    esac
  done
fi

if [ ${#failed[@]} -ne 0 ]; then
  echo "Failed: ${failed[*]}"
  exit 1
fi
echo "All parts passed."

#!/usr/bin/env bash
# For one GPU of every compute capability and four problems: compiles sampled survivors of the
# pruning and sampled rejects, and counts what the resource model got wrong. Prints one line each;
# fails on any finding.
#   --sample N     survivors and rejects to compile per line (default 200)
#   --gpu SLUG     only this GPU (repeatable)
#   --bin FILE     the autotune executable (default build/release/bin/autotune)
#   --json FOLDER  keeps each plan's JSON there
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sample=200
autotune=build/release/bin/autotune
folder=""
gpus=()
while [ $# -gt 0 ]; do
  case $1 in
    --sample) sample=${2:?}; shift 2 ;;
    --gpu) gpus+=("${2:?}"); shift 2 ;;
    --bin) autotune=${2:?}; shift 2 ;;
    --json) folder=${2:?}; shift 2 ;;
    *) die "unknown option $1; see the head of scripts/audit.sh" ;;
  esac
done
[ -x "$autotune" ] || die "no $autotune; scripts/quickstart.sh builds it"
if [ -z "$folder" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"

cc_of() { awk '$1 == "cc:" {print $2}' "configs/gpus/$1.yaml"; }

# The first file of each compute capability stands for it: what is audited depends on nothing else.
if [ ${#gpus[@]} -eq 0 ]; then
  mapfile -t gpus < <(
    awk '$1 == "cc:" && FILENAME !~ /compute_capabilities/ && !seen[$2]++ {
      slug = FILENAME; sub(/.*\//, "", slug); sub(/\.yaml$/, "", slug); print $2, slug
    }' configs/gpus/*.yaml | sort -V | cut -d' ' -f2)
fi

# number KEY FILE: the first value of "KEY" in a JSON file, "?" where there is none.
number() { grep -oE "\"$1\": *[0-9.]+" "$2" 2>/dev/null | head -n 1 | grep -oE '[0-9.]+$' || echo '?'; }

format='%-4s  %-26s  %-15s  %-5s  %9s  %8s  %6s  %10s  %8s  %12s  %13s\n'
printf "$format" cc gpu problem dtype survivors compiled failed mismatches sampled false_passes \
  false_rejects
findings=0
for gpu in "${gpus[@]}"; do
  cc=$(cc_of "$gpu")
  dtype=bf16
  [ "$cc" != 7.5 ] || dtype=fp16  # no bf16 before 8.0
  for problem in 4096x4096x4096 1000x1524x4096 1x4096x4096 100x1524x512; do
    IFS=x read -r m n k <<<"$problem"
    json=$folder/$gpu-$problem.json
    rc=0
    "$autotune" plan gemm --m "$m" --n "$n" --k "$k" --dtype "$dtype" --device "$gpu" \
      --compile "$sample" --audit "$sample" --json "$json" >"$json.log" 2>&1 </dev/null || rc=$?
    printf "$format" "$cc" "$gpu" "$problem" "$dtype" "$(number survivors "$json")" \
      "$(number compiled "$json")" "$(number failed "$json")" "$(number mismatches "$json")" \
      "$(number sampled "$json")" "$(number false_passes "$json")" "$(number false_rejects "$json")"
    if [ "$rc" -ne 0 ]; then
      findings=$((findings + 1))
      say "exit code $rc:"
      tail -n 12 "$json.log" >&2
    fi
  done
done
if [ "$findings" -ne 0 ]; then
  say "Audit: $findings of the lines above have findings."
  exit 1
fi
echo "Audit: no findings."

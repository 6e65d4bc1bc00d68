#!/usr/bin/env bash
# For one GPU of every compute capability and the problems of configs/suites/*_audit.yaml:
# compiles sampled survivors of the pruning and sampled rejects, and counts what the resource model
# got wrong. Fails on any finding.
#   --sample N     survivors and rejects to compile per problem (default 200)
#   --gpu SLUG     only this GPU (repeatable)
#   --bin FILE     the autotune executable (default build/release/bin/autotune)
#   --json FOLDER  keeps the plans' JSON there
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

# The plans of one GPU share a process, so that what they have in common is compiled once.
findings=0
for gpu in "${gpus[@]}"; do
  cc=$(cc_of "$gpu")
  dtype=bf16
  [ "$cc" != 7.5 ] || dtype=fp16  # no bf16 before 8.0
  printf '%s, compute capability %s\n' "$gpu" "$cc"
  for suite in gemm_audit geglu_audit; do
    log=$folder/$gpu.$suite.log
    rc=0
    "$autotune" plan --suite "$suite" --dtype "$dtype" --device "$gpu" --compile "$sample" \
      --audit "$sample" --json "$folder/$gpu.$suite.json" >"$log" 2>&1 </dev/null || rc=$?
    grep -E '^(gemm|geglu|Compiled|Audited) ' "$log" | sed 's/^/  /' || true
    if [ "$rc" -ne 0 ]; then
      findings=$((findings + 1))
      say "exit code $rc:"
      tail -n 12 "$log" >&2
    fi
  done
done
if [ "$findings" -ne 0 ]; then
  say "Audit: $findings of the suites above have findings."
  exit 1
fi
echo "Audit: no findings."

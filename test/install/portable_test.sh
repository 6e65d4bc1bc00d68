#!/usr/bin/env bash
# portable_test.sh SOURCE BINARY IS_PORTABLE: a portable build needs the C library alone, and the
# check of that refuses a build that needs more.
set -euo pipefail
check=$1/scripts/check_portable.sh
binary=$2
case $3 in
  ON) bash "$check" "$binary" ;;
  *)
    if output=$(bash "$check" "$binary" 2>&1); then
      echo "the check passed a binary that is linked dynamically: $output"
      exit 1
    fi
    grep -q 'libstdc++' <<<"$output" || { echo "$output"; exit 1; }
    ;;
esac

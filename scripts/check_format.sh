#!/usr/bin/env bash
# Checks that every C++ file is as clang-format writes it; `--fix` rewrites them. Version 14 on every
# machine, since versions differ in what they write.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

have clang-format-14 || need_packages clang-format-14
mapfile -d '' files < <(git ls-files -z '*.h' '*.cc' '*.cuh')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${files[@]}"
else
  clang-format-14 --dry-run --Werror "${files[@]}" ||
    die "not formatted; scripts/check_format.sh --fix rewrites the files above"
fi

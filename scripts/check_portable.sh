#!/usr/bin/env bash
# check_portable.sh BINARY: fails where BINARY needs a shared library beyond the C library's own.
# Prints its size and the oldest C library that it runs with.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
binary=${1:?usage: check_portable.sh BINARY}
[ -x "$binary" ] || { echo "error: no executable $binary" >&2; exit 2; }

needed=$(LC_ALL=C ldd "$binary" | awk '{print $1}')
extra=$(grep -vE '^(linux-vdso\.so\.1|/?.*ld-linux-[a-z0-9_-]+\.so\.[12]|lib(c|m|dl|pthread|rt)\.so\.[0-9])$' \
  <<<"$needed" || true)
if [ -n "$extra" ]; then
  echo "error: $binary is not portable, it needs: ${extra//$'\n'/ }" >&2
  exit 1
fi
glibc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$binary" | sort -uV | tail -n 1)
echo "$binary: $(stat -c %s "$binary") bytes, runs with ${glibc/_/ } or newer"

#!/usr/bin/env bash
# Checks what each room includes, in the source tree or in the folder given as argument. Prints one
# line per include against the rules, and fails where there is one.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

rooms=(kernels search cache autotune)
for room in "${rooms[@]}"; do
  [ -d "$room" ] || { echo "error: no folder $room in $PWD" >&2; exit 2; }
done

find "${rooms[@]}" -name '*.h' -o -name '*.cc' -o -name '*.cuh' | sort | xargs awk '
function wrong(reason) {
  printf "%s:%d: includes %s: %s\n", FILENAME, FNR, header, reason
  found = 1
}
function only_in(pattern, folder, what) {
  if (header ~ pattern && index(FILENAME, folder) != 1) wrong("only " folder " includes " what)
}
!/^[ \t]*#[ \t]*include[ \t]*["<]/ { next }
{
  header = $0
  sub(/^[^"<]*["<]/, "", header)
  sub(/[">].*$/, "", header)
  room = FILENAME
  sub(/\/.*/, "", room)
  target = header
  sub(/\/.*/, "", target)
  ours = header ~ /^(kernels|search|cache|autotune)\//
}
FILENAME ~ /\.cuh$/ { wrong("a device source includes nothing"); next }
header ~ /^\.\.?\// { wrong("write project includes from the source folder") }
FILENAME ~ /^autotune\/(types|autotune|session|c_api)\.h$/ && ours && header !~ /^autotune\/(types|autotune|session)\.h$/ {
  wrong("an installed header includes installed headers only")
}
ours && room != "autotune" && header != "autotune/types.h" && target != room {
  if (target != "kernels") wrong(room " may include kernels and autotune/types.h only")
  else if (room == "kernels") wrong("kernels may include itself and autotune/types.h only")
}
FILENAME !~ /^autotune\/cli\// && header ~ /^autotune\/cli\// { wrong("the command line is on top of all else") }
FILENAME ~ /^autotune\/(worker|io)\// && header ~ /^autotune\/gpu\// { wrong("no CUDA here") }
FILENAME ~ /^autotune\/(lookup|gpu|worker|io)\// && header ~ /^autotune\/tune\// {
  wrong("only the command line and the tuner itself know the tuner")
}
{
  only_in("^(cuda|cublas|nvrtc|nvml|cupti|driver_types|vector_types)", "autotune/gpu/", "CUDA headers")
  only_in("^yaml-cpp/", "autotune/io/", "YAML")
  only_in("^sqlite3", "cache/", "SQLite")
  only_in("^CLI/", "autotune/cli/", "CLI11")
}
END { exit found }
' >&2

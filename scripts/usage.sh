# shellcheck shell=bash
# Sourced first by the scripts of this folder: with -h or --help a script prints its head and ends.
case ${1:-} in
  -h | --help)
    awk 'NR > 1 { if (!sub(/^# ?/, "")) exit; print }' "$0"
    exit 0
    ;;
esac

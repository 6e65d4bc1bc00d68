#!/usr/bin/env bash
# How long a program waits for the library, beside what it is allowed to: answers with a cache of
# 10,000 winners, the start of a process, and, where there is a GPU, kernel() and launches.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_build_packages
find_cuda
build_preset release session_benchmark
exec build/release/bin/session_benchmark

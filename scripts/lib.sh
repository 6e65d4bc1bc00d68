# shellcheck shell=bash
# What the scripts of this folder share. Sourced, never run; leaves the caller in the source tree.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/usage.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SOURCE_DIR=$PWD
# The compute capabilities of 2025 (sm_103, sm_110) came with this version; as cuda.h writes it.
CUDA_NEEDED=13000

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# quietly LABEL COMMAND...: one line when it starts; its output only where it fails.
quietly() {
  local label=$1 log rc=0
  shift
  mkdir -p build/logs
  log=build/logs/${label//[^a-zA-Z0-9]/_}.log
  say "$label ..."
  "$@" >"$log" 2>&1 </dev/null || rc=$?
  if [ "$rc" -ne 0 ]; then
    tail -n 60 "$log" >&2
    die "$label failed with status $rc; the whole log is $log"
  fi
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# need_packages PACKAGE...: installs those that are missing; Debian and Ubuntu.
need_packages() {
  local package missing=()
  have dpkg-query || die "this script installs packages with apt; install by hand: $*"
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ] && ! have sudo; then
    die "missing packages and neither root nor sudo; run as root: apt-get install ${missing[*]}"
  fi
  quietly "apt: package lists" as_root apt-get -o DPkg::Lock::Timeout=300 update
  quietly "apt: install ${missing[*]}" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"
}

need_build_packages() {
  local tools=()
  have cmake || tools+=(cmake)
  have ninja || tools+=(ninja-build)
  have g++ || tools+=(g++)
  need_packages "${tools[@]}" libeigen3-dev libsqlite3-dev libyaml-cpp-dev catch2 libcli11-dev \
    libfmt-dev libspdlog-dev nlohmann-json3-dev libexpected-dev
}

# clang with what its sanitizers link: a package of its own, named after the version.
need_clang() {
  local version runtime
  have clang++ || need_packages clang
  version=$(clang++ -dumpversion | cut -d. -f1)
  runtime=$(clang++ -print-runtime-dir)
  [ -e "$runtime/libclang_rt.fuzzer-x86_64.a" ] || [ -e "$runtime/libclang_rt.fuzzer.a" ] ||
    need_packages "libclang-rt-$version-dev"
}

# Prints why FOLDER cannot serve as CUDA toolkit, nothing where it can.
cuda_lacks() {
  local folder=$1 header version library
  for header in cuda.h nvrtc.h cublasLt.h cuda_occupancy.h cuda_runtime.h; do
    [ -e "$folder/include/$header" ] || { echo "no $header"; return; }
  done
  version=$(awk '$1 == "#define" && $2 == "CUDA_VERSION" {print $3; exit}' \
    "$folder/include/cuda.h")
  if [ "${version:-0}" -lt "$CUDA_NEEDED" ]; then
    echo "CUDA $((version / 1000)).$((version % 1000 / 10)), 13.0 needed"
    return
  fi
  for library in "$folder"/lib64/libnvrtc.so* "$folder"/lib/*/libnvrtc.so*; do
    [ -e "$library" ] && return
  done
  echo "no libnvrtc.so"
}

# Sets CUDA_ROOT (include/, lib64/) and CUDA_WHY. Takes an installed toolkit, else build/cuda, made
# of pinned packages. AUTOTUNE_HIDE_CUDA=1: as if no toolkit were installed.
find_cuda() {
  local candidates=() folder lacks rejected=""
  if [ "${AUTOTUNE_HIDE_CUDA:-0}" = 1 ]; then
    unset CUDA_HOME CUDA_PATH AUTOTUNE_NVRTC
    rejected=" (AUTOTUNE_HIDE_CUDA=1)"
  else
    have nvcc && candidates+=("$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")")
    candidates=(${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} "${candidates[@]}"
      /usr/local/cuda /usr/local/cuda-13*)
  fi
  for folder in "${candidates[@]}"; do
    [ -d "$folder" ] || continue
    lacks=$(cuda_lacks "$folder")
    if [ -z "$lacks" ]; then
      CUDA_ROOT=$folder
      CUDA_WHY="the toolkit in $folder"
      export CUDA_HOME=$folder
      return
    fi
    [[ $rejected == *"$folder:"* ]] || rejected+=" ($folder: $lacks)"
  done
  unpack_cuda_wheels
  CUDA_ROOT=$SOURCE_DIR/build/cuda
  CUDA_WHY="pinned packages in build/cuda, no usable toolkit here$rejected"
  export CUDA_HOME=$CUDA_ROOT
}

# build/cuda from cuda_wheels.txt, once per content of that file.
unpack_cuda_wheels() {
  local stamp=build/cuda/pinned.txt work=build/cuda.partial wheel
  cmp -s scripts/cuda_wheels.txt "$stamp" && return
  python3 -m pip --version >/dev/null 2>&1 || need_packages python3-pip
  rm -rf "$work"
  mkdir -p "$work/wheels"
  quietly "cuda: download NVRTC, headers and cuBLAS (about 500 MB)" \
    python3 -m pip --disable-pip-version-check download --no-deps --only-binary=:all: \
    --require-hashes -d "$work/wheels" -r scripts/cuda_wheels.txt
  for wheel in "$work"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$work/unpacked"
    rm "$wheel"
  done
  mv "$work"/unpacked/nvidia/cu13/include "$work"/unpacked/nvidia/cu13/lib "$work/"
  # The packages' licence texts.
  mkdir "$work/licenses"
  mv "$work"/unpacked/*.dist-info "$work/licenses/"
  rm -rf "$work/unpacked" "$work/wheels" "$work"/lib/*.alt.so*
  ln -s lib "$work/lib64"
  cp scripts/cuda_wheels.txt "$work/pinned.txt"
  rm -rf build/cuda
  mv "$work" build/cuda
}

# build_preset PRESET [TARGET...]: configures and builds with the CUDA that find_cuda chose.
build_preset() {
  local preset=$1
  shift
  quietly "configure $preset" cmake --preset "$preset" -UAUTOTUNE_CUDA_H \
    "-DAUTOTUNE_CUDA_INCLUDE=$CUDA_ROOT/include"
  quietly "build $preset" cmake --build --preset "$preset" ${1:+--target "$@"}
}

# Sets GPU_NAME to the first GPU that the driver lists (empty: none) and GPU_WHY to the reason.
find_gpu() {
  GPU_NAME=""
  if ! have nvidia-smi; then
    GPU_WHY="no NVIDIA driver here (nvidia-smi is missing)"
  elif GPU_NAME=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) &&
    [ -n "$GPU_NAME" ]; then
    GPU_WHY="found $GPU_NAME"
  else
    GPU_NAME=""
    GPU_WHY="nvidia-smi lists no GPU"
  fi
}

#!/usr/bin/env bash
# package_test.sh SOURCE BUILD: installs the build and looks at it as its users do: what is there,
# what the libraries show, a consumer of each form, pkg-config, the manual page, the completion, and
# the packages that cpack makes.
set -euo pipefail
source_dir=$1
build_dir=$2
work=$build_dir/package_test
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
wrong() { echo "wrong: $*"; exit 1; }
# logged COMMAND...: its output only where it fails.
logged() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; wrong "$*"; }; }

logged cmake --install "$build_dir" --prefix "$prefix"
libraries=$(dirname "$(find "$prefix" -name libautotune.so)")

# Only our headers, and each is whole: it compiles alone.
headers=$(cd "$prefix/include" && find . -name '*.h' | sed 's|^\./||' | sort)
for header in $headers; do
  case $header in
    autotune/autotune.h | autotune/c_api.h | autotune/session.h | autotune/types.h) ;;
    autotune-tuner/*) [ -e "$source_dir/${header#autotune-tuner/}" ] || wrong "header $header" ;;
    *) wrong "a header that is not ours: $header" ;;
  esac
done
sed 's|^autotune-tuner/||; s|.*|#include "&"|' <<<"$headers" >"$work/all.cc"
logged c++ -std=c++20 -fsyntax-only -I "$prefix/include" -I "$prefix/include/autotune-tuner" \
  "$work/all.cc"

# What the shared libraries show is the interface.
shown() { nm -D --defined-only -C "$libraries/$1" | cut -d' ' -f3- | grep -v '^ *$'; }
others=$(shown libautotune.so |
  grep -vE '^(autotune_[a-z_]+|autotune::(Session|Kernel)::|autotune::best_config|autotune::to_string\(autotune::Match\))' || true)
[ -z "$others" ] || wrong "libautotune.so shows: $others"
for function in autotune_abi_version autotune::best_config autotune::Kernel::load autotune::Session::open; do
  shown libautotune.so | grep "^$function" >/dev/null || wrong "libautotune.so lacks $function"
done
others=$(shown libautotune_tuner.so | grep -vE '(^| for )autotune(::|_)' || true)
[ -z "$others" ] || wrong "libautotune_tuner.so shows: $others"
needed=$(LC_ALL=C objdump -p "$libraries/libautotune.so" | awk '/NEEDED/ {print $2}')
! grep -qE 'yaml|nvrtc|cuda' <<<"$needed" || wrong "libautotune.so needs $needed"

# A consumer outside of the tree, in both forms.
mkdir "$work/consumer"
cat >"$work/consumer/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(autotune 0.1 REQUIRED)
add_executable(lookup lookup.cc)
target_link_libraries(lookup PRIVATE autotune::autotune)
add_executable(tune tune.cc)
target_link_libraries(tune PRIVATE autotune::tuner)
set_target_properties(lookup tune PROPERTIES CXX_STANDARD 20)
END
cat >"$work/consumer/lookup.cc" <<'END'
#include <autotune/autotune.h>
#include <autotune/c_api.h>

#include <cstdio>

int main() {
  autotune::Problem problem;
  problem.m = problem.n = problem.k = 4096;
  autotune::BestOptions options;
  options.device = "nvidia-h200";
  options.cache = "/no/such/cache.db";
  const auto best = autotune::best_config(problem, options);
  if (!best) return std::fprintf(stderr, "%s\n", best.error().message.c_str()), 1;
  return std::puts(best->config.c_str()) < 0 || autotune_abi_version() == 0;
}
END
cat >"$work/consumer/tune.cc" <<'END'
#include <autotune/io/builtin.h>
#include <autotune/tune/tuner.h>

#include <cstdio>

int main() {
  const autotune::DeviceSpec* device = autotune::io::find_device("nvidia-h200");
  if (device == nullptr) return 1;
  autotune::tune::TuneOptions options;
  options.worker = "/no/such/worker";
  const auto tuner = autotune::tune::Tuner::create(*device, 0, options);
  if (tuner) return 2;
  return std::puts(tuner.error().message.c_str()) < 0;
}
END
for shared in OFF ON; do
  built=$work/consumer_$shared
  logged cmake -S "$work/consumer" -B "$built" -DCMAKE_BUILD_TYPE=Debug \
    "-DCMAKE_PREFIX_PATH=$prefix" "-DBUILD_SHARED_LIBS=$shared"
  logged cmake --build "$built"
  "$built/lookup" | grep ':block_m=' >/dev/null || wrong "lookup, shared $shared"
  "$built/tune" | grep '/no/such/worker' >/dev/null || wrong "tune, shared $shared"
  linked=$(LC_ALL=C ldd "$built/lookup" | grep -c 'libautotune\.so' || true)
  [ "$linked" = "$([ $shared = ON ] && echo 1 || echo 0)" ] || wrong "shared $shared links $linked"
done

# pkg-config, where it is.
if command -v pkg-config >/dev/null; then
  read -ra flags < <(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs autotune)
  logged c++ -std=c++20 "$work/consumer/lookup.cc" -o "$work/by_pkg_config" "${flags[@]}"
  LD_LIBRARY_PATH=$libraries "$work/by_pkg_config" | grep ':block_m=' >/dev/null || wrong "pkg-config"
fi

# The manual page names every command, and man takes it as it is where there is one.
page=$prefix/share/man/man1/autotune.1
for command in devices plan explain tune bench best bundle cache sweep replay calibrate; do
  grep -q "AUTOTUNE $command\"" "$page" || wrong "$page lacks $command"
done
grep -q -- '--max\\-smem\|\\-\\-max\\-smem' "$page" || wrong "$page lacks an option"
if command -v man >/dev/null; then
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null)
  [ -z "$warnings" ] || wrong "man says: $warnings"
fi

# The completion, as bash calls it.
complete() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _autotune
    printf "%s\n" "${COMPREPLY[@]}"' _ "$prefix/share/bash-completion/completions/autotune" "$@"
}
[ "$(complete autotune pl)" = plan ] || wrong "completion of a command"
[ "$(complete autotune cache ver)" = verify ] || wrong "completion of an action"
[ "$(complete autotune tune gem)" = gemm ] || wrong "completion of a family"
[ "$(complete autotune tune geglu_)" = geglu_mlp ] || wrong "completion of a family with stages"
[ "$(complete autotune plan gemm --max-sme)" = --max-smem ] || wrong "completion of an option"
[ "$(cd "$work/consumer" && complete autotune plan --space loo)" = lookup.cc ] ||
  wrong "completion of a file"

# The packages.
mkdir "$work/packages"
(cd "$work/packages" && logged cpack --config "$build_dir/CPackConfig.cmake" -B "$work/packages")
archive=$(find "$work/packages" -maxdepth 1 -name '*.tar.gz')
tar -tzf "$archive" | grep '/bin/autotune$' >/dev/null || wrong "$archive lacks the program"
if command -v dpkg-deb >/dev/null; then
  package=$(find "$work/packages" -maxdepth 1 -name '*.deb')
  [ "$(dpkg-deb -f "$package" Maintainer)" = "autotune developers" ] || wrong "Maintainer"
  dpkg-deb -c "$package" | grep './usr/bin/autotune$' >/dev/null || wrong "$package lacks the program"
fi
rm -rf "$work"

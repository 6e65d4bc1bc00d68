// A Config is one point of a kernel's parameter space: a kernel and one integer per parameter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune {

class HostTwin;
struct Family;

// Between the configs of a problem's stages, in text.
inline constexpr std::string_view kJoint = " + ";

inline constexpr int kMaxParameters = 12;
using ParameterValuesArray = std::array<std::int32_t, kMaxParameters>;

// One tunable of a kernel. `lo..hi` is what the kernel's code can express at all; which values are
// searched is the space's business (configs/spaces). A run-time parameter is a launch argument:
// configs that differ only in run-time parameters share one cubin. These come last.
struct Parameter {
  std::string_view name;
  std::int32_t lo;
  std::int32_t hi;
  std::int32_t fallback;  // value of a parameter that neither the text nor a default config gives
  bool run_time;
  std::string_view help;
};

// A kernel's parameters, no more than a config has values for.
template <std::size_t kCount>
constexpr std::span<const Parameter> checked_parameters(const Parameter (&parameters)[kCount]) {
  static_assert(kCount <= kMaxParameters, "a config has no room for so many values");
  return parameters;
}

struct Config {
  const HostTwin* kernel = nullptr;  // registry object, lives for the whole program
  ParameterValuesArray values{};     // in the order of kernel->parameters(); the rest is 0
  // Of a problem with two stages, the second's; made by join() in stages.h, lives as long.
  const Config* second = nullptr;

  friend bool operator==(const Config&, const Config&) = default;
};

// Canonical form: "mma:block_m=128,block_n=256,...", every parameter in the kernel's order; stages
// are joined by " + ".
std::string to_string(const Config& config);

// The value of a parameter by name, or -1 where the kernel has no such parameter.
std::int32_t value_of(const Config& config, std::string_view parameter);

// Reads "kernel:name=value,...", of a family with stages one for each ("... + ..."). Omitted
// parameters take the value of `defaults` when that is a config of the same kernel, else the
// parameter's fallback. Unknown kernels, unknown or repeated names and values outside lo..hi are
// bad_input.
Expected<Config> parse_config(std::string_view text, const Family& family,
                              const Config* defaults = nullptr);

// The config with its run-time parameters blanked: configs with equal codes share one cubin.
Config code_of(const Config& config);

struct ConfigHash {
  std::size_t operator()(const Config& config) const;
};

// --exclude patterns: "mma:stages=2,block_m=*", "simt", "*:block_k=128".
// A pattern matches when its kernel name matches ("*" any) and every key=value holds.
struct ConfigPattern {
  std::string kernel;
  struct Term {
    std::string name;
    std::int32_t value = 0;
    bool any = false;
  };
  std::array<Term, kMaxParameters> terms;
  int term_count = 0;
  std::string text;
};
Expected<ConfigPattern> parse_pattern(std::string_view text, const Family& family);
bool matches(const ConfigPattern& pattern, const Config& config);

}  // namespace autotune

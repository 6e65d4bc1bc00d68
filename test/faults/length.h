// How long the tests of random moments run, and where their randomness starts.
// AUTOTUNE_FAULTS=whole: 100 kills of each writer and a minute of writers beside readers; without
// it a part of that, for every change. AUTOTUNE_FAULTS_SEED=N repeats a run.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace autotune::test {

inline bool whole_form() {
  const char* form = std::getenv("AUTOTUNE_FAULTS");
  return form != nullptr && std::string_view(form) == "whole";
}

// Printed, so that what failed once can be repeated.
inline std::uint32_t fault_seed(const char* what) {
  const char* given = std::getenv("AUTOTUNE_FAULTS_SEED");
  const auto seed = given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                                     : std::random_device{}();
  fmt::print("{}: AUTOTUNE_FAULTS_SEED={}\n", what, seed);
  std::fflush(stdout);
  return seed;
}

}  // namespace autotune::test

// What tests of GEMM host twins ask of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune {

inline Problem product(std::int64_t m, std::int64_t n) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = 1;
  const auto whole = checked(problem);
  REQUIRE(whole);
  return *whole;
}

// The same, k deep.
inline Problem deep(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem = product(m, n);
  problem.k = problem.lda = problem.ldb = k;
  return problem;
}

inline Config config_of(std::string_view text) {
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

// For 132 SMs.
inline LaunchPlan plan_of(const Config& config, const Problem& problem) {
  DeviceSpec device;
  device.sm_count = 132;
  return config.kernel->launch_plan(config, problem, device, {1 << 20, 2 << 20, 3 << 20, 0}, 0);
}

}  // namespace autotune

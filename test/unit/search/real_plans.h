// Plans of the real GEMM kernels, for tests.
#pragma once

#include "autotune/io/builtin.h"
#include "search/plan.h"
#include "test/support/catch.h"

namespace autotune::search {

inline Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::bf16) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  const auto whole = checked(problem);
  REQUIRE(whole);
  return *whole;
}

inline const DeviceSpec& device_named(std::string_view name) {
  const DeviceSpec* device = io::find_device(name);
  REQUIRE(device != nullptr);
  return *device;
}

inline const Space& gemm_space() {
  const Space* space = io::default_space("gemm");
  REQUIRE(space != nullptr);
  return *space;
}

inline Plan plan_on(std::string_view device, const Problem& problem, const Limits& limits = {}) {
  auto plan = make_plan(problem, device_named(device), gemm_space(), limits);
  REQUIRE(plan);
  return *std::move(plan);
}

}  // namespace autotune::search

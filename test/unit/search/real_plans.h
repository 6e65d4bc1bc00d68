// Plans of the real GEMM kernels, for tests.
#pragma once

#include "autotune/io/builtin.h"
#include "search/plan.h"
#include "test/support/catch.h"
#include "test/support/problems.h"

namespace autotune::search {

using test::gemm;

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

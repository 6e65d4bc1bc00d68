// What the performance model says of single configs, for tests.
#pragma once

#include <string>

#include "real_plans.h"
#include "search/model.h"

namespace autotune::search {

inline Config config_of(const std::string& text) {
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

inline double predicted_us(const Config& config, const Problem& problem, const DeviceSpec& device) {
  Resources resources;
  REQUIRE_FALSE(check(config, problem, traits_of(problem), device, {}, &resources));
  return predict_us(config, problem, device, resources, 0);
}

inline double term_us(const std::string& label, const Config& config, const Problem& problem,
                      const DeviceSpec& device) {
  const Resources resources = config.kernel->resources(config, problem, device, 0);
  for (const TimeTerm& term : predict_terms(config, problem, device, resources, 0)) {
    if (term.label == label) return term.us;
  }
  FAIL("no term " << label);
  return 0;
}

}  // namespace autotune::search

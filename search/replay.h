// Strategies on results that are known already: how many configs each has to measure until it has
// found how good a one. No GPU, no compiler.
#pragma once

#include <span>
#include <vector>

#include "search/strategy.h"

namespace autotune::search {

struct Recorded {
  Config config;
  Outcome outcome = Outcome::ok;
  double us = 0;  // only for Outcome::ok
};

// A problem of which nothing exists but what was recorded.
struct Recording {
  Plan plan;                         // its survivors were recorded; those of them that the check
                                     // rejects by now count under `rejected`
  std::vector<Observation> results;  // by survivor
  double best_us = 0;                // of all that was recorded
};

// nothing_fits where no config passes the check; failed where none of them ever ran.
Expected<Recording> make_recording(const Problem& problem, const DeviceSpec& device,
                                   const Limits& limits, std::span<const Recorded> recorded);

// Best so far / best of all, after 1, 2, ... measured configs; infinity before one ran. Failures
// count as measured. The strategy is given the results of `batch` configs at a time; it ends by
// itself or after `most` configs.
using Curve = std::vector<double>;
Curve replay(Strategy& strategy, const Recording& recording, std::size_t batch, std::size_t most);

// Median and largest of several curves after each number of configs; a curve that ended stays at
// its last value.
struct CurveBand {
  Curve median;
  Curve worst;
};
CurveBand band_of(std::span<const Curve> curves);

// After how many configs the curve is at most 1 + `within`; 0 where it never is.
std::size_t configs_until(const Curve& curve, double within);

}  // namespace autotune::search

// One config that was tried on one problem, and what came of it.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "kernels/config.h"
#include "kernels/problem.h"
#include "kernels/resources.h"
#include "kernels/verdict.h"

namespace autotune {

// How many launches of `us` each a sample is the mean of: hot some 200 us without a pause.
inline int launches_per_sample(TimingMode mode, double us) {
  if (mode == TimingMode::cold) return 1;
  return static_cast<int>(std::clamp(200 / us, 10.0, 500.0));
}

struct Measurement {
  double median_us = 0;
  double relative_error = 0;  // standard error of the median / median
  int samples = 0;
  double result_error = 0;     // |out - ref|_F / |ref|_F
  double max_error_ratio = 0;  // largest element error / its bound
  double sm_mhz = 0;           // NVML clock after measuring, 0 where unknown
  bool throttled = false;
  bool raced = false;  // stopped early because it was clearly behind

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

struct Trial {
  Config config;
  Outcome outcome = Outcome::ok;
  std::optional<Verdict> verdict;
  Resources predicted;
  double predicted_us = 0;  // of the performance model, when it was planned
  ActualResources actual;
  Measurement measurement;
  double compile_seconds = 0;
  std::string log;  // compiler's or driver's words, where it failed
};

}  // namespace autotune

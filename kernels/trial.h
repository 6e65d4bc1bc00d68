// One config that was tried on one problem, and what came of it.
#pragma once

#include <optional>
#include <string>

#include "kernels/config.h"
#include "kernels/resources.h"
#include "kernels/verdict.h"

namespace autotune {

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

// What samples say: medians, their errors, and when to stop sampling.
#pragma once

#include <span>

namespace autotune::gpu {

// Middle value (mean of the two middle ones for an even count); 0 for none.
double median(std::span<const double> samples);

// Standard error of the median from order statistics, without a guess about the distribution: the
// 95 % confidence interval of the median, divided by 2 x 1.96. 0 for fewer than 2 samples.
double median_error(std::span<const double> samples);

struct Interval {
  double lo = 0;
  double hi = 0;
};
// The 95 % confidence interval of the median from order statistics; the whole range for few
// samples.
Interval median_interval(std::span<const double> samples);

// When a config has been measured enough. Times in microseconds.
struct StopRule {
  double relative_error = 0.005;
  int min_samples = 7;
  int max_samples = 60;
  double max_us = 60'000;  // of kernel time, summed over samples
  double behind_us = 0;    // 0: no race

  enum class Decision { more, settled, exhausted, behind };
  // settled: the median is known well enough. exhausted: a limit of samples or time. behind:
  // clearly slower than behind_us, told as soon as 3 samples all are.
  Decision decide(std::span<const double> samples) const;
  // How many samples to take next, given what there is (at least 1): the rule is looked at between
  // batches, and a batch must not overrun the limits by much.
  int batch(std::span<const double> samples) const;
};

}  // namespace autotune::gpu

#include "autotune/gpu/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace autotune::gpu {
namespace {

// Every figure needs this many samples, also where one takes longer than the time limit.
constexpr int kFewest = 3;
// A race is lost by more than the noise of a few samples.
constexpr double kClearlyBehind = 1.02;
constexpr double kNormal95 = 1.96;

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

double median(std::span<const double> samples) {
  if (samples.empty()) return 0;
  const std::vector<double> values = sorted(samples);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {};
  const std::vector<double> values = sorted(samples);
  // The rank of the true median is binomial(n, 1/2): n/2 -+ 1.96 sqrt(n)/2.
  const double n = static_cast<double>(values.size());
  const double spread = kNormal95 * std::sqrt(n) / 2;
  const auto lo = static_cast<std::ptrdiff_t>(std::floor((n - 1) / 2 - spread));
  const auto hi = static_cast<std::ptrdiff_t>(std::ceil((n - 1) / 2 + spread));
  const auto last = static_cast<std::ptrdiff_t>(values.size()) - 1;
  return {values[std::max<std::ptrdiff_t>(lo, 0)], values[std::min(hi, last)]};
}

double median_error(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const Interval interval = median_interval(samples);
  return (interval.hi - interval.lo) / (2 * kNormal95);
}

StopRule::Decision StopRule::decide(std::span<const double> samples) const {
  const int count = static_cast<int>(samples.size());
  if (count < std::min(kFewest, std::max(max_samples, 1))) return Decision::more;
  if (behind_us > 0 &&
      *std::min_element(samples.begin(), samples.end()) > behind_us * kClearlyBehind) {
    return Decision::behind;
  }
  if (count >= min_samples && median_error(samples) < relative_error * median(samples)) {
    return Decision::settled;
  }
  const double total = std::accumulate(samples.begin(), samples.end(), 0.0);
  if (count >= max_samples || total >= max_us) return Decision::exhausted;
  return Decision::more;
}

int StopRule::batch(std::span<const double> samples) const {
  const int count = static_cast<int>(samples.size());
  if (count < kFewest) return std::clamp(max_samples - count, 1, kFewest - count);
  int wanted = count < min_samples ? min_samples - count : 8;
  wanted = std::min(wanted, max_samples - count);
  const double total = std::accumulate(samples.begin(), samples.end(), 0.0);
  const double each = total / count;
  if (each > 0) wanted = std::min(wanted, static_cast<int>(std::min((max_us - total) / each, 1e6)));
  return std::max(wanted, 1);
}

}  // namespace autotune::gpu

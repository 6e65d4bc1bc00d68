// Which launches a comparison of two sides takes, and when it has seen enough.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include "autotune/gpu/statistics.h"

namespace autotune::gpu {

struct PairRule {
  std::size_t least = 30;
  std::size_t most = 30;  // where `least` leave the ratio uncertain and the launches are short
  double sustain_s = 0;   // above 0: by time in place of the two above; see CompareRequest
};

// Collects interleaved samples, A B B A ...: what drifts touches both sides alike.
class Pairs {
 public:
  explicit Pairs(const PairRule& rule) : rule_(rule) {}

  // The sides (0, 1) of the next launches, pair by pair, at most `room` of them; none when done.
  // `spent` is the time since the comparison began.
  std::vector<int> next(std::size_t room, std::chrono::duration<double> spent);
  // Their times in microseconds, in that order.
  void take(const std::vector<int>& sides, const std::vector<double>& times);

  const std::vector<double>& samples(int side) const {
    return samples_[static_cast<std::size_t>(side)];
  }
  // The second side's time over the first's, pair by pair.
  struct Ratio {
    double median = 0;
    Interval interval;
  };
  Ratio ratio() const;

 private:
  bool enough() const;

  PairRule rule_;
  std::array<std::vector<double>, 2> samples_;
  bool warm_ = false;
};

}  // namespace autotune::gpu

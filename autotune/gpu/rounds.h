// Which launches a comparison takes, and when it has seen enough.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "autotune/gpu/statistics.h"

namespace autotune::gpu {

struct RoundRule {
  std::size_t least = 30;
  std::size_t most = 30;  // where `least` leave a ratio uncertain and took less than kMostUs
  double sustain_s = 0;   // above 0: by time in place of the two above; see CompareRequest
  int launches = 1;       // that a sample is the mean of
  double warm_up_s = 0;   // nothing counts until then, where launches are long enough to matter
};

// Collects interleaved samples, A B C, C A B, ... (of two sides A B, B A): what drifts touches all
// sides alike.
class Rounds {
 public:
  Rounds(std::size_t sides, const RoundRule& rule) : rule_(rule), samples_(sides) {}

  // The sides of the next launches, round by round, at most `room` of them but one round at least;
  // none when done. `spent` is the time since the comparison began, and never falls.
  std::vector<std::size_t> next(std::size_t room, std::chrono::duration<double> spent);
  // Their times in microseconds, in that order.
  void take(std::span<const std::size_t> sides, std::span<const double> times);

  const std::vector<double>& samples(std::size_t side) const { return samples_[side]; }
  // A side's time over the first side's, round by round.
  struct Ratio {
    double median = 0;
    Interval interval;
  };
  Ratio ratio(std::size_t side) const;

 private:
  std::size_t taken() const { return samples_.back().size(); }
  double sampled_us() const;  // of all sides
  bool warming_up(double spent_s);
  void begin_anew();
  bool enough() const;
  bool certain() const;

  RoundRule rule_;
  std::vector<std::vector<double>> samples_;
  bool warm_ = false;
};

// Launches the sides in this order, at most `most` at once, and takes their times: `sample` gives
// those of some sides. Its failure, where it fails.
template <typename Sample>
auto take_samples(Rounds& rounds, std::span<const std::size_t> sides, std::size_t most,
                  Sample sample)
    -> tl::expected<void, typename decltype(sample(sides))::error_type> {
  for (; !sides.empty(); sides = sides.subspan(std::min(most, sides.size()))) {
    const auto now = sides.first(std::min(most, sides.size()));
    const auto times = sample(now);
    if (!times) return tl::unexpected(times.error());
    rounds.take(now, *times);
  }
  return {};
}

}  // namespace autotune::gpu

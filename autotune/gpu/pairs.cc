#include "autotune/gpu/pairs.h"

#include <algorithm>
#include <numeric>

namespace autotune::gpu {
namespace {

// Half of the ratio's confidence interval below which more pairs tell nothing new.
constexpr double kCertain = 0.003;
// Kernel time of both sides after which a comparison takes no more than it must.
constexpr double kShortUs = 15'000;
// Of a sustained comparison, in which the GPU warms up.
constexpr double kWarmUpShare = 0.25;

}  // namespace

bool Pairs::enough() const {
  const std::size_t taken = samples_[1].size();
  if (taken < rule_.least) return false;
  if (taken >= rule_.most) return true;
  double us = 0;
  for (const auto& side : samples_) us = std::accumulate(side.begin(), side.end(), us);
  const Ratio now = ratio();
  return us > kShortUs || now.interval.hi - now.interval.lo < 2 * kCertain * now.median;
}

std::vector<int> Pairs::next(std::size_t room, std::chrono::duration<double> spent) {
  std::size_t pairs = room / 2;
  if (rule_.sustain_s > 0) {
    const double share = spent.count() / rule_.sustain_s;
    if (share >= 1) return {};
    if (!warm_ && share > kWarmUpShare) {
      for (std::vector<double>& side : samples_) side.clear();
      warm_ = true;
    }
  } else {
    if (enough()) return {};
    const std::size_t taken = samples_[1].size();
    pairs = std::min(pairs, (taken < rule_.least ? rule_.least : rule_.most) - taken);
  }
  std::vector<int> sides;
  for (std::size_t i = 0; i < pairs; ++i) {
    const int first = static_cast<int>(i % 2);
    sides.insert(sides.end(), {first, 1 - first});
  }
  return sides;
}

void Pairs::take(const std::vector<int>& sides, const std::vector<double>& times) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    samples_[static_cast<std::size_t>(sides[i])].push_back(times[i]);
  }
}

Pairs::Ratio Pairs::ratio() const {
  std::vector<double> ratios(samples_[1].size());
  std::transform(samples_[1].begin(), samples_[1].end(), samples_[0].begin(), ratios.begin(),
                 [](double b, double a) { return a > 0 ? b / a : 0; });
  return {median(ratios), median_interval(ratios)};
}

}  // namespace autotune::gpu

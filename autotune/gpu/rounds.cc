#include "autotune/gpu/rounds.h"

#include <algorithm>
#include <numeric>

#include "autotune/gpu/warmth.h"

namespace autotune::gpu {
namespace {

// Half of a ratio's confidence interval below which more rounds tell nothing new.
constexpr double kCertain = 0.003;
// Kernel time per side after which a comparison takes no more than it must.
constexpr double kMostUs = 500'000;
// Of a sustained comparison, in which the GPU warms up.
constexpr double kWarmUpShare = 0.25;

}  // namespace

bool Rounds::certain() const {
  for (std::size_t side = 1; side < samples_.size(); ++side) {
    const Ratio now = ratio(side);
    if (now.interval.hi - now.interval.lo >= 2 * kCertain * now.median) return false;
  }
  return true;
}

double Rounds::sampled_us() const {
  double us = 0;
  for (const auto& side : samples_) us = std::accumulate(side.begin(), side.end(), us);
  return us;
}

bool Rounds::enough() const {
  if (taken() < rule_.least) return false;
  if (taken() >= rule_.most) return true;
  const double most_us = kMostUs * static_cast<double>(samples_.size());
  return sampled_us() * rule_.launches > most_us || certain();
}

bool Rounds::warming_up(double spent_s) {
  if (warm_) return false;
  const auto samples = static_cast<double>(taken() * samples_.size());
  const bool long_or_unknown = sampled_us() * rule_.launches >= kLongUs * samples;
  if (long_or_unknown && spent_s < rule_.warm_up_s) return true;
  if (long_or_unknown) begin_anew();
  warm_ = true;
  return false;
}

void Rounds::begin_anew() {
  for (std::vector<double>& side : samples_) side.clear();
  warm_ = true;
}

std::vector<std::size_t> Rounds::next(std::size_t room, std::chrono::duration<double> spent) {
  const std::size_t count = samples_.size();
  std::size_t rounds = std::max<std::size_t>(room / count, 1);
  if (rule_.sustain_s > 0) {
    const double share = spent.count() / rule_.sustain_s;
    if (share >= 1) return {};
    if (!warm_ && share > kWarmUpShare) begin_anew();
  } else if (warming_up(spent.count())) {
    rounds = 1;
  } else {
    if (enough()) return {};
    rounds = std::min(rounds, (taken() < rule_.least ? rule_.least : rule_.most) - taken());
  }
  // Each round starts where the one before it ended.
  std::vector<std::size_t> sides;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t first = (count - (taken() + round) % count) % count;
    for (std::size_t i = 0; i < count; ++i) sides.push_back((first + i) % count);
  }
  return sides;
}

void Rounds::take(std::span<const std::size_t> sides, std::span<const double> times) {
  for (std::size_t i = 0; i < times.size(); ++i) samples_[sides[i]].push_back(times[i]);
}

Rounds::Ratio Rounds::ratio(std::size_t side) const {
  std::vector<double> ratios(samples_[side].size());
  std::transform(samples_[side].begin(), samples_[side].end(), samples_.front().begin(),
                 ratios.begin(),
                 [](double other, double first) { return first > 0 ? other / first : 0; });
  return {median(ratios), median_interval(ratios)};
}

}  // namespace autotune::gpu

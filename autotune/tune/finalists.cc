#include "autotune/tune/finalists.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "kernels/kernel.h"

namespace autotune::tune {
namespace {

// Clocks drift from trial to trial by more than configs differ, so the final is wide: as many as
// can be timed in kTime, three at least.
constexpr std::size_t kFinalists = 16;
constexpr std::size_t kAtLeast = 3;
constexpr std::size_t kOfShape = 4;  // with the same tile, which differ least
constexpr std::chrono::milliseconds kTime{1500};
// What is further behind than this was not held back by noise.
constexpr double kWithin = 1.1;
// A few pairs tell who is beaten by more than kBeaten; the rest take as many as it needs.
constexpr Pairs kFirstPairs{8, 8};
constexpr Pairs kPairs{30, 120};
constexpr double kBeaten = 0.01;
// Two whose times differ by less are as good as each other.
constexpr double kSame = 0.002;
// These may have been timed in an earlier run.
constexpr double kSeededWithin = 1.3;

void retime(Trial& trial, const Measurement& paired) {
  trial.measurement.median_us = paired.median_us;
  trial.measurement.relative_error = paired.relative_error;
  trial.measurement.samples = paired.samples;
  trial.measurement.throttled = paired.throttled;
}

class Final {
 public:
  Final(std::vector<Trial>& trials, std::optional<std::size_t> default_index,
        std::optional<std::size_t> former_index, const Pairing& pairing)
      : trials_(trials), default_(default_index), former_(former_index), pairing_(pairing) {}

  Expected<Standing> run() {
    std::vector<std::size_t> order(trials_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [this](std::size_t a, std::size_t b) { return us(a) < us(b); });
    const double within = us(order.front()) * kWithin;
    king_ = order.front();
    std::size_t finalists = 0;
    std::map<Shape, std::size_t> of_shape;
    const auto start = std::chrono::steady_clock::now();
    for (const std::size_t each : order) {
      if (us(each) > within || finalists == kFinalists) break;
      if (of_shape[shape(each)]++ >= kOfShape) continue;
      ++finalists;
      // The default comes last, so that it and the winner are timed side by side.
      if (each == king_ || each == former_ || each == default_) continue;
      if (finalists > kAtLeast && std::chrono::steady_clock::now() - start > kTime) break;
      if (auto fought = duel(each); !fought) return tl::unexpected(fought.error());
    }
    for (const auto& seeded : {former_, default_}) {
      if (!seeded || *seeded == king_ || us(*seeded) > us(king_) * kSeededWithin) continue;
      if (auto fought = duel(*seeded); !fought) return tl::unexpected(fought.error());
    }
    standing_.winner = king_;
    standing_.tie = std::find(tied_.begin(), tied_.end(), king_) != tied_.end();
    standing_.lead_percent = lead_percent();
    return standing_;
  }

 private:
  using Shape = std::tuple<const HostTwin*, std::int32_t, std::int32_t>;
  Shape shape(std::size_t i) const {
    const Config& config = trials_[i].config;
    return {config.kernel, value_of(config, "block_m"), value_of(config, "block_n")};
  }

  double us(std::size_t i) const { return trials_[i].measurement.median_us; }

  Expected<void> duel(std::size_t challenger) {
    auto reply = pairing_(trials_[king_], trials_[challenger], kFirstPairs);
    const bool open =
        reply && *reply && (*reply)->outcome == Outcome::ok && (*reply)->ratio < 1 + kBeaten;
    if (open) reply = pairing_(trials_[king_], trials_[challenger], kPairs);
    if (!reply) return tl::unexpected(reply.error());
    if (!*reply || (*reply)->outcome != Outcome::ok) return {};
    retime(trials_[king_], (*reply)->a);
    retime(trials_[challenger], (*reply)->b);
    standing_.timed_again.insert({king_, challenger});
    const bool tie = (*reply)->ratio_lo <= 1 && (*reply)->ratio_hi >= 1;
    const bool same = tie && std::abs((*reply)->ratio - 1) < kSame;
    const bool challenger_wins =
        same ? fewer_resources(trials_[challenger], trials_[king_]) : (*reply)->ratio < 1;
    if (tie) tied_.insert(tied_.end(), {king_, challenger});
    const std::size_t other = challenger_wins ? king_ : challenger;
    const std::size_t best = challenger_wins ? challenger : king_;
    king_ = other == default_ && us(best) > us(other) ? other : best;
    return {};
  }

  double lead_percent() const {
    double second = 0;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      if (i != king_ && (second == 0 || us(i) < second)) second = us(i);
    }
    return second == 0 ? 0 : std::max(0.0, (second / us(king_) - 1) * 100);
  }

  std::vector<Trial>& trials_;
  std::optional<std::size_t> default_;
  std::optional<std::size_t> former_;
  const Pairing& pairing_;
  std::size_t king_ = 0;
  std::vector<std::size_t> tied_;
  Standing standing_;
};

}  // namespace

bool fewer_resources(const Trial& a, const Trial& b) {
  const auto order = [](const Trial& trial) {
    const Resources& r = trial.predicted;
    return std::tuple(r.smem_bytes + r.static_smem_bytes,
                      static_cast<std::int64_t>(r.threads) * trial.actual.registers,
                      r.workspace_bytes);
  };
  return order(a) < order(b);
}

Expected<Standing> settle(std::vector<Trial>& trials, std::optional<std::size_t> default_index,
                          std::optional<std::size_t> former_index, const Pairing& pairing) {
  return Final(trials, default_index, former_index, pairing).run();
}

}  // namespace autotune::tune

// The predicted ranking spread over kernels and tile shapes, then the neighbours of what was
// measured best, then on down the ranking; done when two rounds in a row gain nothing.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "search/neighbours.h"
#include "search/strategies.h"

namespace autotune::search {
namespace {

constexpr std::size_t kOpening = 24;  // tile shapes of the first round
constexpr std::size_t kOfKernel = 6;  // of them at least so many of each kernel: the prediction
                                      // ranks one kernel's configs better than two kernels
constexpr std::size_t kCenters = 3;   // whose neighbours make a round
constexpr std::size_t kRound = 24;    // configs of a later round
constexpr double kGain = 0.01;        // a round that gains less than this is idle
constexpr int kIdleRounds = 2;

class ModelGuided final : public Strategy {
 public:
  explicit ModelGuided(const Plan& plan)
      : plan_(plan), neighbours_(plan), planned_(plan.survivors.size()) {
    open();
  }

  std::string_view name() const override { return "model"; }

  std::vector<std::size_t> next(std::span<const Observation> history, std::size_t limit) override {
    if (given_ == round_.size() && !start_round(history)) return {};
    const std::size_t count = std::min(limit, round_.size() - given_);
    const auto begin = round_.begin() + static_cast<std::ptrdiff_t>(given_);
    given_ += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  bool add(std::size_t candidate) {
    if (planned_[candidate]) return false;
    planned_[candidate] = true;
    round_.push_back(candidate);
    return true;
  }

  // The best of each tile shape as predicted; the first of all is the default config.
  void open() {
    std::set<std::tuple<const HostTwin*, std::int32_t, std::int32_t>> shapes;
    std::map<const HostTwin*, std::size_t> of_kernel;
    const auto add_shapes = [&](std::size_t most, std::size_t most_of_kernel) {
      for (std::size_t i = 0; i < plan_.survivors.size() && round_.size() < most; ++i) {
        const Config& config = plan_.survivors[i].config;
        if (of_kernel[config.kernel] >= most_of_kernel) continue;
        const auto shape =
            std::tuple(config.kernel, value_of(config, "block_m"), value_of(config, "block_n"));
        if (!shapes.insert(shape).second) continue;
        add(i);
        ++of_kernel[config.kernel];
      }
    };
    add_shapes(plan_.survivors.size(), kOfKernel);
    add_shapes(kOpening, plan_.survivors.size());
    std::sort(round_.begin(), round_.end());
  }

  // Fills round_ from what is known by now; false when there is nothing left that promises a gain.
  bool start_round(std::span<const Observation> history) {
    std::vector<Observation> good;
    for (const Observation& seen : history) {
      if (seen.outcome == Outcome::ok) good.push_back(seen);
    }
    std::sort(good.begin(), good.end(), [](const Observation& a, const Observation& b) {
      return std::tie(a.median_us, a.candidate) < std::tie(b.median_us, b.candidate);
    });
    if (!good.empty()) {
      const double best = good.front().median_us;
      idle_ = best < best_us_ * (1 - kGain) ? 0 : idle_ + 1;
      best_us_ = std::min(best_us_, best);
      if (idle_ >= kIdleRounds) return false;
    }
    round_.clear();
    given_ = 0;
    surround(good);
    if (round_.empty()) go_down();
    return !round_.empty();
  }

  void surround(const std::vector<Observation>& good) {
    std::vector<std::size_t> around;
    for (std::size_t i = 0; i < std::min(kCenters, good.size()); ++i) {
      const std::vector<std::size_t> of_one = neighbours_.of(good[i].candidate);
      around.insert(around.end(), of_one.begin(), of_one.end());
    }
    std::sort(around.begin(), around.end());  // by predicted time
    for (const std::size_t candidate : around) {
      if (round_.size() < kRound) add(candidate);
    }
  }

  void go_down() {
    for (; ranked_ < planned_.size() && round_.size() < kRound; ++ranked_) add(ranked_);
  }

  const Plan& plan_;
  Neighbours neighbours_;
  std::vector<bool> planned_;  // ever put in a round
  std::vector<std::size_t> round_;
  std::size_t given_ = 0;   // of round_
  std::size_t ranked_ = 0;  // the ranking above is planned
  double best_us_ = std::numeric_limits<double>::infinity();
  int idle_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> make_model(const Plan& plan) {
  return std::make_unique<ModelGuided>(plan);
}

}  // namespace autotune::search

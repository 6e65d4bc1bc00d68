// Evolution: a random population, then children of the best measured, each one step of one
// parameter away from a parent or with each parameter from one of two parents.
#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "search/draw.h"
#include "search/neighbours.h"
#include "search/strategies.h"

namespace autotune::search {
namespace {

constexpr std::size_t kPopulation = 24;
constexpr std::size_t kTournament = 4;  // drawn from the population; the fastest is a parent
constexpr int kAttempts = 16;           // at a child that was never tried
constexpr double kGain = 0.01;          // what counts as progress
constexpr std::size_t kPatience = 160;  // configs without progress, unless another is asked for

class Evolution final : public Strategy {
 public:
  Evolution(const Plan& plan, const StrategyOptions& options)
      : plan_(plan),
        neighbours_(plan),
        random_(options.seed),
        patience_(options.patience > 0 ? options.patience : kPatience),
        planned_(plan.survivors.size()) {
    for (std::size_t i = 0; i < plan.survivors.size(); ++i) {
      index_.emplace(plan.survivors[i].config, i);
    }
  }

  std::string_view name() const override { return "evolution"; }

  std::vector<std::size_t> next(std::span<const Observation> history, std::size_t limit) override {
    std::vector<Observation> best;
    for (const Observation& seen : history) {
      if (seen.outcome == Outcome::ok) best.push_back(seen);
    }
    std::sort(best.begin(), best.end(), [](const Observation& a, const Observation& b) {
      return std::tie(a.median_us, a.candidate) < std::tie(b.median_us, b.candidate);
    });
    best.resize(std::min(best.size(), kPopulation));
    note_progress(best, history.size());
    std::vector<std::size_t> batch;
    if (history.size() - progress_at_ >= patience_) return batch;
    while (batch.size() < limit && given_ < planned_.size()) {
      const std::size_t candidate = given_ == 0            ? 0
                                    : given_ < kPopulation ? stranger()
                                    : best.size() < 2      ? stranger()
                                                           : child(best);
      planned_[candidate] = true;
      ++given_;
      batch.push_back(candidate);
    }
    return batch;
  }

 private:
  void note_progress(const std::vector<Observation>& best, std::size_t seen) {
    if (best.empty() || best.front().median_us >= best_us_ * (1 - kGain)) return;
    best_us_ = best.front().median_us;
    progress_at_ = seen;
  }

  std::size_t parent(const std::vector<Observation>& best) {
    std::size_t winner = best.size();
    for (std::size_t i = 0; i < kTournament; ++i) {
      winner = std::min<std::size_t>(winner, random_.below(best.size()));
    }
    return best[winner].candidate;
  }

  // A survivor that was never tried, any of them.
  std::size_t stranger() {
    std::size_t candidate = random_.below(planned_.size());
    while (planned_[candidate]) candidate = (candidate + 1) % planned_.size();
    return candidate;
  }

  std::size_t child(const std::vector<Observation>& best) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::size_t mother = parent(best);
      const std::size_t father = parent(best);
      const bool same_kernel =
          plan_.survivors[mother].config.kernel == plan_.survivors[father].config.kernel;
      const std::size_t found =
          same_kernel && random_.below(2) == 0 ? crossed(mother, father) : mutated(mother);
      if (!planned_[found]) return found;
    }
    return stranger();
  }

  // `mother` itself where the cross is no survivor.
  std::size_t crossed(std::size_t mother, std::size_t father) {
    Config config = plan_.survivors[mother].config;
    for (std::size_t i = 0; i < config.values.size(); ++i) {
      if (random_.below(2) == 0) config.values[i] = plan_.survivors[father].config.values[i];
    }
    const auto found = index_.find(config);
    return found == index_.end() ? mother : found->second;
  }

  std::size_t mutated(std::size_t mother) {
    const std::vector<std::size_t> around = neighbours_.of(mother);
    return around.empty() ? mother : around[random_.below(around.size())];
  }

  const Plan& plan_;
  Neighbours neighbours_;
  Random random_;
  std::size_t patience_;
  std::unordered_map<Config, std::size_t, ConfigHash> index_;
  std::vector<bool> planned_;  // ever returned
  std::size_t given_ = 0;
  std::size_t progress_at_ = 0;  // length of the history at the last gain
  double best_us_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::unique_ptr<Strategy> make_evolution(const Plan& plan, const StrategyOptions& options) {
  return std::make_unique<Evolution>(plan, options);
}

}  // namespace autotune::search

// Strategies driven on a real plan, where a trial takes what its prediction and a hash say.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "real_plans.h"
#include "search/draw.h"
#include "search/strategy.h"

namespace autotune::search {

// On a GPU that the model was not fitted to, so that no fit changes what strategies are asked.
inline const Plan& plan() {
  static const Plan plan = plan_on("nvidia-gh200-480gb", gemm(1024, 1024, 1024));
  return plan;
}

inline std::unique_ptr<Strategy> strategy_named(std::string_view name, std::uint64_t seed = 1) {
  auto strategy = make_strategy(name, plan(), {seed});
  REQUIRE(strategy);
  REQUIRE((*strategy)->name() == name);
  return std::move(*strategy);
}

// A machine on which the prediction is off by up to 30 %, by a hash of the config's code.
inline double measured_us(std::size_t candidate) {
  const Candidate& c = plan().survivors[candidate];
  std::uint64_t key = 0;
  for (int p = 0; p < 6; ++p) key = key * 1000003 + static_cast<std::uint64_t>(c.config.values[p]);
  const double noise = static_cast<double>(Random(key).below(1000)) / 1000;
  return c.predicted_us * (1 + 0.3 * noise);
}

struct Run {
  std::vector<std::size_t> order;
  double best_us = 1e30;
};

inline Run drive(Strategy& strategy, std::size_t limit,
                 const std::function<Observation(std::size_t)>& measure) {
  Run run;
  std::vector<Observation> history;
  std::set<std::size_t> seen;
  while (true) {
    const auto batch = strategy.next(history, limit);
    if (batch.empty()) return run;
    REQUIRE(batch.size() <= limit);
    for (const std::size_t candidate : batch) {
      REQUIRE(candidate < plan().survivors.size());
      REQUIRE(seen.insert(candidate).second);
      history.push_back(measure(candidate));
      if (history.back().outcome == Outcome::ok) {
        run.best_us = std::min(run.best_us, history.back().median_us);
      }
      run.order.push_back(candidate);
    }
  }
}

inline Observation works(std::size_t candidate) {
  return {candidate, Outcome::ok, measured_us(candidate)};
}

}  // namespace autotune::search

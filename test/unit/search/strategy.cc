#include "search/strategy.h"

#include <algorithm>

#include "search/neighbours.h"
#include "strategy_runs.h"

namespace autotune::search {

TEST_CASE("unknown strategies are bad input that lists the known ones") {
  const auto strategy = make_strategy("genetic", plan());
  REQUIRE_FALSE(strategy);
  CHECK(strategy.error().code == ErrorCode::bad_input);
  CHECK(strategy.error().message.find("exhaustive, random, evolution or model") !=
        std::string::npos);
  const auto name_alone = check_strategy("genetic");
  REQUIRE_FALSE(name_alone);
  CHECK(name_alone.error().message == strategy.error().message);
}

TEST_CASE("patience sets how long a strategy goes on without a gain", "[long]") {
  for (const char* name : {"model", "evolution"}) {
    INFO(name);
    std::size_t tried = 0;
    double best_us = 1e30;
    for (const std::size_t patience : {8, 120, 400}) {
      const auto strategy = make_strategy(name, plan(), {1, patience});
      REQUIRE(strategy);
      const Run run = drive(**strategy, 8, works);
      CHECK(run.order.size() > tried);
      CHECK(run.best_us <= best_us);
      tried = run.order.size();
      best_us = run.best_us;
    }
    CHECK(tried > 400);
  }
  for (const char* name : {"exhaustive", "random"}) {
    const auto strategy = make_strategy(name, plan(), {1, 100});
    REQUIRE_FALSE(strategy);
    CHECK(strategy.error().code == ErrorCode::bad_input);
    CHECK(strategy.error().message.find(name) == 0);
  }
}

TEST_CASE("every strategy starts with the default config") {
  for (const std::string_view name : {"exhaustive", "random", "evolution", "model"}) {
    CHECK(check_strategy(name));
    for (const std::size_t limit : {1, 8}) {
      const auto batch = strategy_named(name)->next({}, limit);
      REQUIRE(batch.size() == limit);
      CHECK(batch[0] == 0);
    }
  }
}

TEST_CASE("exhaustive goes down the ranking, random through all of it by seed") {
  const Run all = drive(*strategy_named("exhaustive"), 64, works);
  REQUIRE(all.order.size() == plan().survivors.size());
  CHECK(std::is_sorted(all.order.begin(), all.order.end()));
  const Run one = drive(*strategy_named("random", 5), 64, works);
  CHECK(one.order.size() == plan().survivors.size());
  CHECK(drive(*strategy_named("random", 5), 7, works).order == one.order);
  CHECK(drive(*strategy_named("random", 6), 64, works).order != one.order);
}

TEST_CASE("evolution gets near the best, another way for another seed, and stops by itself") {
  const double best = drive(*strategy_named("exhaustive"), 1000, works).best_us;
  std::set<std::vector<std::size_t>> orders;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Run run = drive(*strategy_named("evolution", seed), 8, works);
    INFO("seed " << seed << ": " << run.order.size() << " trials, " << run.best_us / best);
    CHECK(run.best_us < best * 1.1);
    CHECK(run.order.size() < plan().survivors.size() / 10);
    CHECK(drive(*strategy_named("evolution", seed), 8, works).order == run.order);
    orders.insert(run.order);
  }
  CHECK(orders.size() == 3);
  const auto broken = [](std::size_t candidate) {
    return Observation{candidate, Outcome::launch_failed, 0};
  };
  CHECK(drive(*strategy_named("evolution"), 8, broken).order.size() < 400);
}

TEST_CASE("neighbours differ by one step of one parameter") {
  const Neighbours neighbours(plan());
  const std::size_t center = 0;
  const auto around = neighbours.of(center);
  REQUIRE(around.size() >= 3);
  for (const std::size_t candidate : around) {
    const Config& config = plan().survivors[candidate].config;
    const Config& from = plan().survivors[center].config;
    CHECK(config.kernel == from.kernel);
    int changed = 0;
    for (int p = 0; p < kMaxParameters; ++p) {
      if (config.values[p] == from.values[p]) continue;
      ++changed;
      const auto [least, most] = std::minmax(config.values[p], from.values[p]);
      const auto between = [&, least = least, most = most](const Candidate& each) {
        return each.config.kernel == from.kernel && each.config.values[p] > least &&
               each.config.values[p] < most;
      };
      CHECK(std::none_of(plan().survivors.begin(), plan().survivors.end(), between));
    }
    CHECK(changed == 1);
  }
}

TEST_CASE("neighbours lie on both sides of a config, which is one of theirs") {
  const Neighbours neighbours(plan());
  bool less = false;
  bool more = false;
  for (std::size_t center = 0; center < plan().survivors.size(); center += 997) {
    const ParameterValuesArray& from = plan().survivors[center].config.values;
    for (const std::size_t each : neighbours.of(center)) {
      const ParameterValuesArray& to = plan().survivors[each].config.values;
      less = less || to < from;
      more = more || to > from;
      const auto back = neighbours.of(each);
      CHECK(std::find(back.begin(), back.end(), center) != back.end());
    }
  }
  CHECK(less);
  CHECK(more);
}

}  // namespace autotune::search

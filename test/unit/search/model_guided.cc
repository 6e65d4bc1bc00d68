// What the model strategy asks for.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "strategy_runs.h"

namespace autotune::search {

TEST_CASE("the model strategy prefers configs whose code is there, and finds as good ones") {
  // The code of every other depth of pipeline is there, of those that are chosen less otherwise.
  const auto there = [](std::size_t candidate) {
    return value_of(plan().survivors[candidate].config, "stages") % 2 == 1;
  };
  const auto share = [&](const Run& run) {
    const auto count = std::count_if(run.order.begin(), run.order.end(), there);
    return static_cast<double>(count) / static_cast<double>(run.order.size());
  };
  const Run any = drive(*strategy_named("model"), 8, works);
  const auto nothing_there =
      make_strategy("model", plan(), {1, 0, [](std::size_t) { return false; }});
  REQUIRE(nothing_there);
  CHECK(drive(**nothing_there, 8, works).order == any.order);

  std::map<std::size_t, int> asked;
  const auto strategy = make_strategy("model", plan(), {1, 0, [&](std::size_t candidate) {
                                                          ++asked[candidate];
                                                          return there(candidate);
                                                        }});
  REQUIRE(strategy);
  const Run run = drive(**strategy, 8, works);
  CHECK(share(run) > share(any) + 0.1);
  CHECK(run.best_us < any.best_us * 1.03);
  CHECK(std::all_of(asked.begin(), asked.end(), [](const auto& each) { return each.second == 1; }));
}

TEST_CASE("the model strategy staggers the k tiles of the best codes, in the end") {
  const Plan thin = plan_on("nvidia-h200", gemm(64, 14336, 4096));
  const auto stagger = [&](std::size_t candidate) {
    const Config& config = thin.survivors[candidate].config;
    return config.kernel->tile_order(config).stagger;
  };
  const auto strategy = make_strategy("model", thin);
  REQUIRE(strategy);
  std::vector<Observation> history;
  while (true) {
    const auto batch = (*strategy)->next(history, 8);
    if (batch.empty()) break;
    for (const std::size_t candidate : batch) {
      const double us = thin.survivors[candidate].predicted_us;
      history.push_back({candidate, Outcome::ok, stagger(candidate) == 8 ? 0.97 * us : us});
    }
  }
  const auto first = std::find_if(history.begin(), history.end(), [&](const Observation& seen) {
    return stagger(seen.candidate) != 0;
  });
  REQUIRE(first != history.end());
  CHECK(first - history.begin() >= 24);
  CHECK(std::all_of(first, history.end(),
                    [&](const Observation& seen) { return stagger(seen.candidate) != 0; }));
  const auto best = std::min_element(
      history.begin(), history.end(),
      [](const Observation& a, const Observation& b) { return a.median_us < b.median_us; });
  CHECK(stagger(best->candidate) == 8);
  std::set<std::size_t> given;
  for (const Observation& seen : history) CHECK(given.insert(seen.candidate).second);
}

TEST_CASE(
    "a search of the model strategy ends with so many trials in a row without a percent of gain") {
  // Long launches, so that no orders of tiles are measured in the end.
  struct Case {
    double gain;  // of each trial over the one before
    bool counts;  // within patience it makes a percent
  };
  constexpr std::size_t kPatience = 60;
  constexpr std::size_t kGaining = 150;
  for (const auto& [gain, counts] : {Case{0, false}, {0.0001, false}, {0.0003, true}}) {
    INFO(gain);
    const auto strategy = make_strategy("model", plan(), {1, kPatience});
    REQUIRE(strategy);
    double us = 1000;
    std::size_t trials = 0;
    const Run run = drive(**strategy, 1, [&, gain = gain](std::size_t candidate) {
      if (++trials < kGaining) us *= 1 - gain;
      return Observation{candidate, Outcome::ok, us};
    });
    const std::size_t gained_at = counts ? kGaining : 1;
    CHECK(run.order.size() > gained_at + (counts ? 20 : kPatience - 1));
    CHECK(run.order.size() < gained_at + kPatience + 20);
  }
}

TEST_CASE("the model strategy leaves orders out where launches are long") {
  for (const double scale : {1, 1000}) {
    const Run run = drive(*strategy_named("model"), 8, [&](std::size_t candidate) {
      return Observation{candidate, Outcome::ok, scale * measured_us(candidate)};
    });
    const auto best = std::min_element(
        run.order.begin(), run.order.end(),
        [](std::size_t a, std::size_t b) { return measured_us(a) < measured_us(b); });
    const Config code = code_of(plan().survivors[*best].config);
    const auto is_code = [&](const Candidate& each) { return code_of(each.config) == code; };
    const auto all = std::count_if(plan().survivors.begin(), plan().survivors.end(), is_code);
    const auto seen = std::count_if(run.order.begin(), run.order.end(), [&](std::size_t candidate) {
      return is_code(plan().survivors[candidate]);
    });
    INFO(run.best_us << " us: " << seen << " of " << all);
    CHECK((seen == all) == (scale == 1));
  }
}

TEST_CASE("the model strategy measures the best codes in every order of their tiles") {
  // The order alone makes up to 21 %.
  const auto in_order = [](std::size_t candidate) {
    const Config& config = plan().survivors[candidate].config;
    const int order = value_of(config, "raster") * 5 + value_of(config, "swizzle");
    return Observation{candidate, Outcome::ok, measured_us(candidate) * (1 + 0.01 * order)};
  };
  const Run run = drive(*strategy_named("model"), 8, in_order);
  std::vector<std::size_t> ranking = run.order;
  std::sort(ranking.begin(), ranking.end(), [&](std::size_t a, std::size_t b) {
    return in_order(a).median_us < in_order(b).median_us;
  });
  std::vector<Config> codes;
  for (const std::size_t candidate : ranking) {
    const Config code = code_of(plan().survivors[candidate].config);
    if (std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
  }
  REQUIRE(codes.size() > 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto is_code = [&](const Candidate& each) { return code_of(each.config) == codes[i]; };
    const auto all = std::count_if(plan().survivors.begin(), plan().survivors.end(), is_code);
    const auto seen = std::count_if(run.order.begin(), run.order.end(), [&](std::size_t candidate) {
      return is_code(plan().survivors[candidate]);
    });
    CHECK(all > 3);
    CHECK(seen == all);
  }
}

TEST_CASE("model opens with every kernel, tile shapes and ways to cooperate, the default first") {
  const auto batch = strategy_named("model")->next({}, 100);
  REQUIRE(batch.size() == 8);
  CHECK(batch.front() == 0);
  std::set<std::tuple<std::string_view, int, int>> shapes;
  std::map<std::string_view, int> of_kernel;
  std::set<std::tuple<std::string_view, bool, bool>> manners;
  for (const std::size_t candidate : batch) {
    const auto& [config, resources, predicted_us] = plan().survivors[candidate];
    shapes.emplace(config.kernel->name(), value_of(config, "block_m"), value_of(config, "block_n"));
    ++of_kernel[config.kernel->name()];
    manners.emplace(config.kernel->name(), resources.cluster > 1, value_of(config, "split_k") > 1);
  }
  CHECK(shapes.size() >= 6);
  for (const bool split : {false, true}) {
    CHECK(manners.contains({"wgmma", true, split}));
    CHECK(manners.contains({"mma", false, split}));
  }
  CHECK(manners.contains({"wgmma", false, false}));
  CHECK(of_kernel["wgmma"] >= 2);
  CHECK(of_kernel["mma"] >= 2);
}

TEST_CASE("model opens with each way to cooperate that stands high in the ranking") {
  using Manner = std::tuple<std::string_view, bool, bool, bool>;
  const auto manner_of = [](const Candidate& each) {
    return Manner{each.config.kernel->name(), each.resources.cluster > 1,
                  value_of(each.config, "split_k") > 1, each.resources.workspace_bytes > 0};
  };
  // Some of whose best differ in nothing but the workspace, or the parts of k.
  for (const Problem& problem : {gemm(64, 512, 16384), gemm(100, 512, 1524)}) {
    const Plan few = plan_on("nvidia-h200", problem);
    std::set<Manner> opened;
    for (const std::size_t each : make_strategy("model", few).value()->next({}, 100)) {
      opened.insert(manner_of(few.survivors[each]));
    }
    for (std::size_t i = 0; i < 2000; ++i) {
      const Config& config = few.survivors.at(i).config;
      INFO(to_string(config));
      if (config.kernel->tile_order(config).stagger != 0) continue;
      CHECK(opened.contains(manner_of(few.survivors[i])));
    }
  }
}

TEST_CASE("model finds a near-best config in few trials and stops by itself") {
  const double best = drive(*strategy_named("exhaustive"), 1000, works).best_us;
  for (const std::size_t limit : {1, 4, 16}) {
    const Run run = drive(*strategy_named("model"), limit, works);
    INFO("limit " << limit << ": " << run.order.size() << " trials, " << run.best_us / best);
    CHECK(run.best_us < best * 1.08);
    CHECK(run.order.size() < 150);
  }
}

TEST_CASE("model waits for results rather than guess far ahead, and goes on when half are there") {
  const auto strategy = strategy_named("model");
  const auto opening = strategy->next({}, 100);
  CHECK(strategy->next({}, 100).empty());
  std::vector<Observation> history;
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(strategy->next(history, 100).empty());
    history.push_back(works(opening[i]));
  }
  const auto more = strategy->next(history, 100);
  CHECK(more.size() == 4);
  for (const std::size_t candidate : more) {
    CHECK(std::find(opening.begin(), opening.end(), candidate) == opening.end());
  }
  CHECK(strategy->next(history, 100).empty());
}

TEST_CASE("model leaves what fails and those like it") {
  // Nothing of the kernel that the ranking likes best runs.
  const HostTwin* favourite = plan().survivors[0].config.kernel;
  const Run run = drive(*strategy_named("model"), 8, [&](std::size_t candidate) {
    return plan().survivors[candidate].config.kernel == favourite
               ? Observation{candidate, Outcome::launch_failed, 0}
               : works(candidate);
  });
  double best = 1e30;
  for (std::size_t i = 0; i < plan().survivors.size(); ++i) {
    if (plan().survivors[i].config.kernel != favourite) best = std::min(best, measured_us(i));
  }
  INFO(run.order.size() << " trials, " << run.best_us / best);
  CHECK(run.best_us < best * 1.1);
  CHECK(run.order.size() < 400);
}

TEST_CASE("model follows its measurements to where the ranking is wrong") {
  // A machine that likes deep pipelines only: the ranking's favourites are far from its best.
  const auto deep = [](std::size_t candidate) {
    const int stages = std::min(value_of(plan().survivors[candidate].config, "stages"), 10);
    return Observation{candidate, Outcome::ok, 100.0 / stages};
  };
  const Run run = drive(*strategy_named("model"), 8, deep);
  CHECK(run.best_us == Approx(10.0));
  CHECK(run.order.size() < 600);
}

TEST_CASE("model measures staggered configs where the space has no others, the default first") {
  Limits limits;
  limits.excludes.push_back(parse_pattern("*:stagger=0", *find_family("gemm")).value());
  const Plan staggered = plan_on("nvidia-h200", gemm(64, 4096, 4096), limits);
  const auto strategy = make_strategy("model", staggered, {1, 0});
  REQUIRE(strategy);
  const auto first = (*strategy)->next({}, 8);
  REQUIRE_FALSE(first.empty());
  CHECK(first.front() == 0);
  std::set<std::string_view> kernels;
  for (std::vector<std::size_t> batch = first; !batch.empty(); batch = (*strategy)->next({}, 8)) {
    for (const std::size_t each : batch) {
      kernels.insert(staggered.survivors[each].config.kernel->name());
    }
    if (kernels.size() > 20) break;
  }
  CHECK(kernels.contains("wgmma"));
}

TEST_CASE("model does not ask for what was measured without its asking") {
  std::vector<std::size_t> order = drive(*strategy_named("model"), 1, works).order;
  REQUIRE(order.size() > 20);
  const std::size_t former = order[10];  // which it would come to
  const auto strategy = strategy_named("model");
  auto batch = strategy->next({}, 1);
  std::vector<Observation> history{works(former)};
  for (; !batch.empty(); batch = strategy->next(history, 1)) {
    CHECK(batch.front() != former);
    history.push_back(works(batch.front()));
  }
  CHECK(history.size() > 20);
}

TEST_CASE("model measures a former winner's code in every order, wherever that stands") {
  std::size_t former = 0;
  while (
      plan().survivors[former].config.kernel->tile_order(plan().survivors[former].config).stagger ==
      0) {
    ++former;
    REQUIRE(former < plan().survivors.size());
  }
  const Config code = code_of(plan().survivors[former].config);
  const auto strategy = strategy_named("model");
  std::vector<Observation> history{{former, Outcome::ok, 1.0}};  // far ahead of all others
  std::set<std::size_t> given;
  for (auto batch = strategy->next({}, 1); !batch.empty(); batch = strategy->next(history, 4)) {
    for (const std::size_t each : batch) {
      given.insert(each);
      history.push_back({each, Outcome::ok, measured_us(each)});
    }
  }
  for (std::size_t i = 0; i < plan().survivors.size(); ++i) {
    if (i != former && code_of(plan().survivors[i].config) == code) CHECK(given.contains(i));
  }
}

TEST_CASE("model goes far down the ranking while nothing works") {
  const auto broken = [](std::size_t candidate) {
    return Observation{candidate, Outcome::compile_failed, 0};
  };
  CHECK(drive(*strategy_named("model"), 500, broken).order.size() > 10'000);
  const auto rarely = [](std::size_t candidate) {
    return candidate == 100 ? works(candidate) : Observation{candidate, Outcome::launch_failed, 0};
  };
  CHECK(drive(*strategy_named("model"), 16, rarely).best_us == Approx(measured_us(100)));
}

}  // namespace autotune::search

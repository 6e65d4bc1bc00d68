// What a run takes from the cache of those before it.
#include <algorithm>
#include <utility>
#include <vector>

#include "autotune/tune/tuner.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using namespace test;

// Crowned for this problem: as an earlier run left it, or on code that is another one today.
void crown_instead(cache::Store& store, const Problem& problem, const Config& config,
                   bool todays_code = true) {
  auto record = store.winner(problem_key(problem), fingerprint(h200())).value();
  REQUIRE(record);
  record->trial.key.config = to_string(config);
  record->trial.key.source_hash =
      todays_code ? source_hash(config, traits_of(problem), h200()) : std::string(64, '0');
  record->trial.measurement.median_us = test::fake_time_us(to_string(config));
  REQUIRE(store.record(record->trial));
  REQUIRE(store.crown(*record));
}

// The trials of one cache into another, as that compiler's. How many they are.
std::int64_t copy_trials(const cache::Store& from, cache::Store& to, const Problem& problem,
                         const std::string& compiler) {
  auto rows = from.trials(problem_key(problem), fingerprint(h200())).value();
  for (cache::TrialRecord& row : rows) {
    row.run = 0;
    row.key.compiler = compiler;
    REQUIRE(to.record(row));
  }
  return static_cast<std::int64_t>(rows.size());
}

}  // namespace

TEST_CASE("what the cache holds is not measured again, unless asked") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  FakeLog log;
  Watcher first;
  const Problem problem = small_problem();
  const TuneResult before = tuned(fake_options(), problem, &store, first);
  log.clear();
  Watcher second;
  const TuneResult again = tuned(fake_options(), problem, &store, second);
  CHECK(log.lines("measure").empty());
  CHECK(before.compiled > 0);
  CHECK(again.reused == static_cast<std::int64_t>(first.trials.size()));
  CHECK(again.compiled == 0);
  CHECK(again.outcomes == before.outcomes);
  CHECK(again.winner.config == before.winner.config);
  Watcher third;
  TuneOptions fresh = fake_options();
  fresh.fresh = true;
  const TuneResult measured = tuned(fresh, problem, &store, third);
  CHECK(measured.reused == 0);
  CHECK(measured.compiled == 0);
  CHECK(log.lines("measure").size() == first.trials.size());
}

TEST_CASE("what won for a problem like this one is tried, unless a search begins from scratch") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Problem like = problem;
  like.m *= 2;
  Watcher watcher;
  // The slowest of all, which a search that ends early would not come to by itself.
  REQUIRE(tuned(fake_options(), like, &store, watcher).crowned);
  const search::Plan& plan = watcher.plans[0];
  const std::string slowest = to_string(plan.survivors.back().config);
  auto record = store.winner(problem_key(like), fingerprint(h200())).value();
  REQUIRE(record);
  record->trial.key.config = slowest;
  REQUIRE(store.crown(*record));

  for (const bool from_scratch : {false, true}) {
    TuneOptions brief = fake_options("model");
    brief.max_trials = 4;
    brief.fresh = true;
    brief.from_scratch = from_scratch;
    Watcher seen;
    tuned(brief, problem, &store, seen);
    const bool tried = std::any_of(seen.trials.begin(), seen.trials.end(), [&](const Trial& each) {
      return to_string(each.config) == slowest;
    });
    CHECK(tried == !from_scratch);
    CHECK(seen.trials.size() <= 4);
    brief.max_trials = 1;  // which is the default config's
    Watcher alone;
    tuned(brief, problem, &store, alone);
    CHECK(alone.trials.size() == 1);
  }
}

TEST_CASE("a former winner comes on top of the trials, also where a search begins from scratch") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  REQUIRE(tuned(fake_options(), problem, &store, watcher).crowned);
  const auto& survivors = watcher.plans[0].survivors;
  for (const std::size_t former : {std::size_t{2}, survivors.size() - 1}) {
    crown_instead(store, problem, survivors[former].config);
    TuneOptions brief = fake_options();
    brief.max_trials = 4;
    brief.from_scratch = true;
    Watcher seen;
    tuned(brief, problem, &store, seen);
    CHECK(seen.trials.size() == 5);
    CHECK(seen.progress.back().total == 5);
    CHECK(std::any_of(seen.trials.begin(), seen.trials.end(),
                      [&](const Trial& each) { return each.config == survivors[former].config; }));
  }
}

TEST_CASE("a former winner that is behind what others took once is in the final") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  REQUIRE(tuned(fake_options(), problem, &store, watcher).crowned);
  std::vector<std::pair<double, Config>> order;
  for (const search::Candidate& each : watcher.plans[0].survivors) {
    order.emplace_back(test::fake_time_us(to_string(each.config)), each.config);
  }
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto former = std::find_if(order.begin(), order.end(), [&](const auto& each) {
    return each.first > 1.15 * order[1].first;
  });
  REQUIRE(former != order.end());
  REQUIRE(former->first < 1.25 * order[1].first);
  for (const bool crowned : {false, true}) {
    if (crowned) crown_instead(store, problem, former->second);
    const FakeLog log;
    tuned(fake_options(), problem, &store, watcher);
    REQUIRE_FALSE(log.lines("compare").empty());
    const bool compared =
        log.lines("compare")[0].find(to_string(former->second)) != std::string::npos;
    CHECK(compared == crowned);
  }
}

TEST_CASE("what another compiler's code took is measured again") {
  const TempFolder folder;
  const TempFolder other_folder;
  cache::Store store = open_store(folder);
  cache::Store other = open_store(other_folder);
  const Problem problem = small_problem();
  Watcher watcher;
  tuned(fake_options(), problem, &store, watcher);
  REQUIRE(copy_trials(store, other, problem, "nvrtc 98.0") > 0);
  CHECK(tuned(fake_options(), problem, &other, watcher).reused == 0);
}

TEST_CASE("finalists whose code no longer compiles keep their times") {
  const TempFolder folder;
  const TempFolder other_folder;
  cache::Store store = open_store(folder);
  cache::Store other = open_store(other_folder);
  const Problem problem = small_problem();
  Watcher watcher;
  const TuneResult whole = tuned(fake_options(), problem, &store, watcher);
  const std::int64_t copied = copy_trials(store, other, problem, "nvrtc 99.0");
  const Setting rules("AUTOTUNE_FAKE_RULES", "THREADS=>fail");
  const FakeLog log;
  const TuneResult again = tuned(fake_options(), problem, &other, watcher);
  CHECK(again.reused == copied);
  CHECK(log.lines("compare").empty());
  CHECK(again.winner.measurement.median_us == Approx(whole.winner.measurement.median_us));
}

TEST_CASE("the default config is measured where an earlier run left it because it spills") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  const Setting rules("AUTOTUNE_FAKE_RULES", "THREADS=>spill");
  Watcher watcher;
  tuned(fake_options(), problem, &store, watcher);
  const search::Plan& plan = watcher.plans[0];
  TuneOptions options = fake_options();
  const auto first = parse_pattern(to_string(plan.default_config().config), *find_family("gemm"));
  REQUIRE(first);
  options.limits.excludes.push_back(*first);
  Watcher second;
  const TuneResult result = tuned(options, problem, &store, second);
  CHECK(result.default_us ==
        Approx(test::fake_time_us(to_string(second.plans.at(0).default_config().config))));
}

}  // namespace autotune::tune

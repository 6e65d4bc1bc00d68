// Searches that are bounded, stopped or restricted: what they answer, and whether they crown.
#include <atomic>

#include "autotune/tune/session.h"
#include "autotune/tune/tuner.h"
#include "test/support/tuning.h"

namespace autotune::tune {

using namespace test;

TEST_CASE("a bound on trials is kept, and holds the default config") {
  for (const char* strategy : {"exhaustive", "random", "evolution", "model"}) {
    TuneOptions options = fake_options(strategy);
    options.max_trials = 5;
    Watcher watcher;
    const TuneResult result = tuned(options, small_problem(), nullptr, watcher);
    CHECK(watcher.trials.size() == 5);
    CHECK(result.default_us > 0);
    CHECK(watcher.progress.back().total == 5);
  }
}

TEST_CASE("a budget is respected, and gives an answer however small it is") {
  const Setting slow("AUTOTUNE_FAKE_RULES", "THREADS=>slow");
  TuneOptions options = fake_options();
  options.space = test::small_space(3);
  for (const double budget : {0.001, 1.0}) {
    options.budget_seconds = budget;
    Watcher watcher;
    const TuneResult result = tuned(options, small_problem(), nullptr, watcher);
    CHECK(result.default_us > 0);
    CHECK(result.winner.measurement.median_us <= result.default_us);
    CHECK(watcher.trials.size() < watcher.plans[0].survivors.size());
    CHECK(result.seconds < budget + 5);
    CHECK_FALSE(result.cancelled);
  }
}

TEST_CASE("the finalists have a share of a short budget, and some seconds of a long one") {
  CHECK(without_final(0) == 0);
  CHECK(without_final(2) < 0.9 * 2);
  CHECK(without_final(2) > 0.8 * 2);
  CHECK(without_final(600) < 600 - 2);
  CHECK(without_final(600) > 600 - 3);
}

TEST_CASE("a budget that is over waits for a config that works where the first do not") {
  Watcher watcher;
  TuneOptions options = fake_options();
  tuned(options, small_problem(), nullptr, watcher);
  std::string rules;
  for (std::size_t i = 0; i < 8; ++i) {
    rules += to_string(watcher.plans[0].survivors.at(i).config) + "=>refuse|";
  }
  const Setting refused("AUTOTUNE_FAKE_RULES", rules);
  options.budget_seconds = 0.0001;
  const TuneResult result = tuned(options, small_problem(), nullptr, watcher);
  CHECK(result.winner.measurement.median_us > 0);
  CHECK(result.default_us == 0);
}

TEST_CASE("a measurement that hangs holds up the end of a budget for a moment only") {
  Watcher whole;
  TuneOptions options = fake_options();
  tuned(options, small_problem(), nullptr, whole);
  const std::string hangs = to_string(whole.plans[0].survivors.at(3).config);
  const Setting rules("AUTOTUNE_FAKE_RULES", hangs + "=>hang");
  options.budget_seconds = 1;
  Watcher watcher;
  const TuneResult result = tuned(options, small_problem(), nullptr, watcher);
  CHECK(watcher.trials.size() < whole.trials.size());
  CHECK(result.seconds < 10);
}

TEST_CASE("a stopped run keeps what was measured") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  std::atomic<bool> stop{false};
  Watcher watcher;
  watcher.stop = &stop;
  watcher.stop_after = 4;
  const auto result = test::tune_once(fake_options(), small_problem(), &store, watcher, stop);
  REQUIRE(result);
  CHECK(result->cancelled);
  CHECK(watcher.trials.size() >= 4);
  CHECK(watcher.trials.size() < watcher.plans[0].survivors.size());
  const auto rows = store.trials(problem_key(small_problem()), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() == watcher.trials.size());

  const std::atomic<bool> at_once{true};
  Watcher nobody;
  const auto nothing = test::tune_once(fake_options(), small_problem(), nullptr, nobody, at_once);
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == ErrorCode::cancelled);
}

TEST_CASE("a run that the cache answers is stopped as well") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Watcher first;
  tuned(fake_options(), small_problem(), &store, first);
  std::atomic<bool> stop{false};
  Watcher watcher;
  watcher.stop = &stop;
  watcher.stop_after = 2;
  const auto result = test::tune_once(fake_options(), small_problem(), &store, watcher, stop);
  REQUIRE(result);
  CHECK(result->reused > 0);
  CHECK(watcher.trials.size() < first.trials.size());
  CHECK(result->cancelled);
}

TEST_CASE("a stopped run replaces a winner only where it beats that") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher patient;
  const TuneResult best = tuned(fake_options(), problem, &store, patient);
  REQUIRE(best.crowned);
  std::atomic<bool> stop{false};
  Watcher hasty;
  hasty.stop = &stop;
  hasty.stop_after = 1;
  TuneOptions again = fake_options();
  again.fresh = true;
  const auto result = test::tune_once(again, problem, &store, hasty, stop);
  REQUIRE(result);
  REQUIRE(result->cancelled);
  REQUIRE(result->winner.measurement.median_us > best.winner.measurement.median_us);
  CHECK_FALSE(result->crowned);
  const auto kept = store.winner(problem_key(problem), fingerprint(h200()));
  REQUIRE(kept);
  REQUIRE(kept->has_value());
  CHECK((*kept)->trial.key.config == to_string(best.winner.config));
}

TEST_CASE("a stopped run replaces a winner of other code, however fast that was") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher patient;
  REQUIRE(tuned(fake_options(), problem, &store, patient).crowned);
  auto former = store.winner(problem_key(problem), fingerprint(h200())).value();
  REQUIRE(former);
  former->trial.key.source_hash = std::string(64, '0');
  former->trial.measurement.median_us = 0.1;
  REQUIRE(store.record(former->trial));
  REQUIRE(store.crown(*former));
  std::atomic<bool> stop{false};
  Watcher hasty;
  hasty.stop = &stop;
  hasty.stop_after = 3;
  const auto result = test::tune_once(fake_options(), problem, &store, hasty, stop);
  REQUIRE(result);
  REQUIRE(result->cancelled);
  CHECK(result->crowned);
}

TEST_CASE("a budget that is over leaves time for the default config, whatever the cache holds") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  tuned(fake_options(), problem, nullptr, watcher);
  const Config first = watcher.plans[0].default_config().config;
  TuneOptions without = fake_options();
  const auto pattern = parse_pattern(to_string(first), *find_family("gemm"));
  REQUIRE(pattern);
  without.limits.excludes.push_back(*pattern);
  tuned(without, problem, &store, watcher);
  TuneOptions brief = fake_options();
  brief.budget_seconds = 0.0001;
  const TuneResult result = tuned(brief, problem, &store, watcher);
  CHECK(result.reused > 0);
  CHECK(result.default_us == Approx(test::fake_time_us(to_string(first))));
}

TEST_CASE("a restricted run records its trials and never crowns") {
  const Problem problem = small_problem();
  TuneOptions capped = fake_options();
  capped.limits.max_smem = 100 * 1024;
  TuneOptions custom = fake_options();
  custom.space.built_in = false;
  TuneOptions excluding = fake_options();
  const auto pattern = parse_pattern("simt:block_k=4096", *find_family("gemm"));
  REQUIRE(pattern);
  excluding.limits.excludes.push_back(*pattern);
  TuneOptions few_sms = fake_options();
  few_sms.limits.max_sms = 8;
  for (const auto& [options, limited_by] : {std::pair{capped, "--max-smem (or AUTOTUNE_MAX_SMEM)"},
                                            {custom, "--space"},
                                            {excluding, "--exclude"},
                                            {few_sms, "--max-sms"}}) {
    CHECK(options.limited_by() == limited_by);
    const TempFolder folder;
    cache::Store store = open_store(folder);
    Watcher watcher;
    const TuneResult result = tuned(options, problem, &store, watcher);
    CHECK_FALSE(result.crowned);
    const auto winner = store.winner(problem_key(problem), fingerprint(h200()));
    REQUIRE(winner);
    CHECK_FALSE(*winner);
    const auto rows = store.trials(problem_key(problem), fingerprint(h200()));
    REQUIRE(rows);
    // Times on a part of the device are kept apart from those of the whole.
    CHECK(rows->empty() == (options.limits.max_sms > 0));
  }
  few_sms.limits.excludes.push_back(*pattern);
  CHECK(few_sms.limited_by() == "--max-sms, --exclude");
  CHECK(fake_options().limited_by().empty());
}

TEST_CASE("a budget that is over leaves time for the winner of an earlier run") {
  const TempFolder folder;
  cache::Store with_code = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  const TuneResult whole = tuned(fake_options(), problem, &with_code, watcher);
  REQUIRE(whole.winner.measurement.median_us < whole.default_us);
  auto record = with_code.winner(problem_key(problem), fingerprint(h200())).value();
  REQUIRE(record);
  record->trial.run = 0;
  // Its code has to be compiled, which takes a moment longer than the default config's.
  const TempFolder other;
  cache::Store store = open_store(other);
  REQUIRE(store.record(record->trial));
  REQUIRE(store.crown(*record));
  const Setting slow("AUTOTUNE_FAKE_RULES", to_string(whole.winner.config) + "=>slow");
  TuneOptions brief = fake_options("model");
  brief.budget_seconds = 0.0001;
  brief.fresh = true;
  const TuneResult again = tuned(brief, problem, &store, watcher);
  CHECK(again.winner.config == whole.winner.config);
}

TEST_CASE("a short run does not replace the winner of a long one") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  const TuneResult whole = tuned(fake_options(), problem, &store, watcher);
  TuneOptions brief = fake_options("model");
  brief.max_trials = 1;
  for (const bool fresh : {false, true}) {
    brief.fresh = fresh;
    const TuneResult again = tuned(brief, problem, &store, watcher);
    CHECK(again.winner.config == whole.winner.config);
  }
}

}  // namespace autotune::tune

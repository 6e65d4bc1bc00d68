// Tuning what takes two kernels: each of them, then which of the best go together.
#include "kernels/stages.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "autotune/tune/session.h"
#include "autotune/tune/tuner.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using test::FakeLog;
using test::h200;
using test::open_store;
using test::Setting;
using test::small_mlp;
using test::TempFolder;
using test::tuned;
using test::Watcher;

constexpr std::size_t kTrials = 8;  // of each stage

TuneOptions options_of_mlp() {
  TuneOptions options = test::fake_options();
  options.max_trials = kTrials;
  return options;
}

std::optional<cache::WinnerRecord> winner_of(const cache::Store& store, const Problem& problem) {
  const auto winner = store.winner(problem_key(problem), fingerprint(h200()));
  REQUIRE(winner);
  return *winner;
}

// The joined configs that were compared.
std::set<std::string> compared(const FakeLog& log) {
  std::set<std::string> pairs;
  for (const std::string& line : log.lines("compare")) {
    if (line.find(kJoint) == std::string::npos) continue;
    std::istringstream words(line);
    for (std::string first, plus, second; words >> first >> plus >> second;) {
      pairs.insert(first + ' ' + plus + ' ' + second);
    }
  }
  return pairs;
}

// A pair that is faster than this one, by more than a tie.
Config faster_pair(const std::vector<search::Plan>& plans, const Config& than) {
  for (const search::Candidate& first : plans.at(0).survivors) {
    for (const search::Candidate& second : plans.at(1).survivors) {
      const Config pair = join(first.config, second.config);
      if (test::fake_time_us(to_string(pair)) < 0.98 * test::fake_time_us(to_string(than)))
        return pair;
    }
  }
  FAIL("no pair is faster");
  return {};
}

// As the winner of an earlier run.
void crown_former(cache::Store& store, const Config& former, bool todays_code) {
  auto record = winner_of(store, small_mlp());
  REQUIRE(record);
  record->trial.key.config = to_string(former);
  record->trial.key.source_hash =
      todays_code ? source_hash(former, small_mlp(), h200()) : std::string(64, '0');
  REQUIRE(store.record(record->trial));
  REQUIRE(store.crown(*record));
}

// Notes how many trials each stage began with, too.
struct StageWatcher : Watcher {
  void planned(const search::Plan& plan) override {
    begins.push_back(trials.size());
    Watcher::planned(plan);
  }
  std::vector<std::size_t> begins;
};

}  // namespace

TEST_CASE("an MLP's stages are tuned, then which of their best go together") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const FakeLog log;
  Watcher watcher;
  const Problem problem = small_mlp();
  const TuneResult result = tuned(options_of_mlp(), problem, &store, watcher);
  REQUIRE(watcher.plans.size() == 2);
  CHECK(watcher.plans[0].problem == stage_of(problem, 0));
  CHECK(watcher.plans[1].problem == stage_of(problem, 1));
  CHECK(watcher.trials.size() == 2 * kTrials);
  CHECK(result.outcomes.at("ok") == 2 * kTrials);
  CHECK(result.reused == 0);
  CHECK(result.problem == problem);
  CHECK(result.match == "exact");
  CHECK(result.crowned);
  CHECK_FALSE(result.cancelled);

  const std::set<std::string> pairs = compared(log);
  REQUIRE_FALSE(pairs.empty());
  const std::string& fastest = *std::min_element(
      pairs.begin(), pairs.end(),
      [](const auto& a, const auto& b) { return test::fake_time_us(a) < test::fake_time_us(b); });
  CHECK(to_string(result.winner.config) == fastest);
  CHECK(result.winner.measurement.median_us == Approx(test::fake_time_us(fastest)));
  for (const std::string& code : log.lines("code")) {
    CHECK((code == "gated plain" || code == "gated none" || code == "plain none"));
  }

  const auto joined = winner_of(store, problem);
  REQUIRE(joined);
  CHECK(joined->trial.key.config == fastest);
  CHECK(joined->trial.key.source_hash == source_hash(result.winner.config, problem, h200()));
  CHECK(joined->trial.predicted.workspace_bytes == kWorkspaceMarkBytes + 1000 * 2000 * 4);
  for (const std::size_t stage : {0, 1}) {
    const auto own = winner_of(store, stage_of(problem, stage));
    REQUIRE(own);
    const auto config =
        parse_config(own->trial.key.config, stage_of(*find_family("geglu_mlp"), stage));
    REQUIRE(config);
    // So that a program needs no compiler.
    const std::string hash = source_hash(stage_of(result.winner.config, stage),
                                         traits_of(stage_of(problem, stage)), h200());
    const auto code = store.cubin({hash, h200().limits.arch, "nvrtc 99.0"});
    REQUIRE(code);
    CHECK(code->has_value());
  }
  CHECK(watcher.warnings.empty());
}

TEST_CASE("an MLP's stages have half each of what a budget leaves for searching") {
  TuneOptions options = test::fake_options("model");  // which knows no total, so that what is left
  options.budget_seconds = 1000;                      // is of the budget
  StageWatcher watcher;
  const TuneResult result = tuned(options, small_mlp(), nullptr, watcher);
  REQUIRE(watcher.begins.size() == 2);
  for (const Progress& each : watcher.progress) {
    CHECK(each.elapsed_s + each.left_s == Approx(without_final(1000) / 2));
  }
  // The second's begins when the first is done.
  const Progress& last_of_first = watcher.progress.at(watcher.begins[1] - 1);
  CHECK(watcher.progress.at(watcher.begins[1]).elapsed_s < last_of_first.elapsed_s);
  CHECK(result.seconds > last_of_first.elapsed_s + watcher.progress.back().elapsed_s);
}

TEST_CASE("an MLP's result tells what became of the trials of both stages") {
  const Setting rules("AUTOTUNE_FAKE_RULES", "STAGES=2=>fail");
  const FakeLog log;
  Watcher watcher;
  const TuneResult result = tuned(options_of_mlp(), small_mlp(), nullptr, watcher);
  std::size_t failed = 0;
  for (const Trial& trial : watcher.trials) failed += trial.outcome == Outcome::compile_failed;
  REQUIRE(failed > 0);
  CHECK(result.outcomes.at("compile_failed") == static_cast<std::int64_t>(failed));
  CHECK_FALSE(result.failures.empty());
  for (const Trial& trial : result.failures) CHECK(trial.outcome == Outcome::compile_failed);
  CHECK(result.compiled == static_cast<std::int64_t>(log.lines("compile").size()));
}

TEST_CASE("an MLP's pair is expected to take what both of its stages do, and leads the second") {
  const FakeLog log;
  Watcher watcher;
  const TuneResult result = tuned(options_of_mlp(), small_mlp(), nullptr, watcher);
  double predicted_us = 0;
  for (const std::size_t stage : {0, 1}) {
    const Config own = stage_of(result.winner.config, stage);
    for (const search::Candidate& each : watcher.plans.at(stage).survivors) {
      if (each.config == own) predicted_us += each.predicted_us;
    }
  }
  CHECK(result.winner.predicted_us == Approx(predicted_us));
  std::set<double> times;
  for (const std::string& pair : compared(log)) times.insert(test::fake_time_us(pair));
  REQUIRE(times.size() > 1);
  const double best = *times.begin();
  REQUIRE(best == Approx(result.winner.measurement.median_us));
  CHECK(result.lead_percent > 0);
  CHECK(result.lead_percent >= (*std::next(times.begin()) / best - 1) * 99.9);
}

TEST_CASE("tuning an MLP again measures neither stage again") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  FakeLog log;
  Watcher first;
  const TuneResult before = tuned(options_of_mlp(), small_mlp(), &store, first);
  log.clear();
  Watcher second;
  const TuneResult again = tuned(options_of_mlp(), small_mlp(), &store, second);
  CHECK(log.lines("measure").empty());
  CHECK(log.lines("compile").empty());
  CHECK(again.reused == 2 * kTrials);
  CHECK(again.winner.config == before.winner.config);
  CHECK_FALSE(compared(log).empty());
}

TEST_CASE("an MLP's former winner meets what a later run finds") {
  for (const bool todays_code : {true, false}) {
    CAPTURE(todays_code);
    const TempFolder folder;
    cache::Store store = open_store(folder);
    FakeLog log;
    Watcher watcher;
    const TuneResult before = tuned(options_of_mlp(), small_mlp(), &store, watcher);
    const Config former = faster_pair(watcher.plans, before.winner.config);
    REQUIRE_FALSE(compared(log).contains(to_string(former)));
    crown_former(store, former, todays_code);
    log.clear();
    Watcher again;
    const TuneResult after = tuned(options_of_mlp(), small_mlp(), &store, again);
    CHECK(compared(log).contains(to_string(former)) == todays_code);
    CHECK(after.winner.config == (todays_code ? former : before.winner.config));
    CHECK(winner_of(store, small_mlp())->trial.key.config == to_string(after.winner.config));
  }
}

TEST_CASE("a run that is stopped before the stages met is cancelled") {
  // After the first stage's last trial, and within the second.
  for (const std::size_t trials : {kTrials, kTrials + 3}) {
    CAPTURE(trials);
    const TempFolder folder;
    cache::Store store = open_store(folder);
    std::atomic<bool> stop{false};
    Watcher watcher;
    watcher.stop = &stop;
    watcher.stop_after = static_cast<int>(trials);
    const auto result = test::tune_once(options_of_mlp(), small_mlp(), &store, watcher, stop);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::cancelled);
    CHECK_FALSE(winner_of(store, small_mlp()));
    const auto rows = store.trials(problem_key(stage_of(small_mlp(), 0)), fingerprint(h200()));
    REQUIRE(rows);
    CHECK(rows->size() == kTrials);
  }
}

TEST_CASE("a restricted run crowns no winner of an MLP") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  TuneOptions options = options_of_mlp();
  options.limits.max_smem = 100 * 1024;
  Watcher watcher;
  const TuneResult result = tuned(options, small_mlp(), &store, watcher);
  CHECK_FALSE(result.crowned);
  CHECK_FALSE(winner_of(store, small_mlp()));
  const auto pairs = store.trials(problem_key(small_mlp()), fingerprint(h200()));
  REQUIRE(pairs);
  REQUIRE(pairs->size() == 1);  // but keeps what it took
  CHECK(pairs->front().key.config == to_string(result.winner.config));
}

TEST_CASE("a restricted run does not bring back the winner of a whole one") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Watcher watcher;
  const TuneResult before = tuned(options_of_mlp(), small_mlp(), &store, watcher);
  const Config former = faster_pair(watcher.plans, before.winner.config);
  crown_former(store, former, true);
  const Config own = stage_of(former, 1);
  TuneOptions options = options_of_mlp();
  options.limits.excludes.push_back(
      parse_pattern(to_string(own), stage_of(*find_family("geglu_mlp"), 1)).value());
  const FakeLog log;
  const TuneResult result = tuned(options, small_mlp(), &store, watcher);
  CHECK(stage_of(result.winner.config, 1) != own);
  CHECK_FALSE(compared(log).contains(to_string(former)));
}

TEST_CASE("a pair that takes its worker down leaves the others in the final") {
  Watcher watcher;
  const std::atomic<bool> never{false};
  const auto whole = test::tune_once(options_of_mlp(), small_mlp(), nullptr, watcher, never);
  REQUIRE(whole);
  const std::string winner = to_string(whole->winner.config);
  const Setting rules("AUTOTUNE_FAKE_RULES", winner + "=>kill");
  const auto result = test::tune_once(options_of_mlp(), small_mlp(), nullptr, watcher, never);
  REQUIRE(result);
  CHECK(to_string(result->winner.config) != winner);
  CHECK(result->winner.measurement.samples > 0);
}

TEST_CASE("an MLP's default has a time of both stages together, or none") {
  Watcher watcher;
  TuneOptions options = test::fake_options();  // without a limit, so that others are faster
  const TuneResult whole = tuned(options, small_mlp(), nullptr, watcher);
  const Config pair = join(watcher.plans.at(0).default_config().config,
                           watcher.plans.at(1).default_config().config);
  REQUIRE(whole.winner.config != pair);
  CHECK(whole.default_us == Approx(test::fake_time_us(to_string(pair))));
  const Setting rules("AUTOTUNE_FAKE_RULES", to_string(pair) + "=>kill");
  const TuneResult without = tuned(options, small_mlp(), nullptr, watcher);
  CHECK(without.winner.config == whole.winner.config);
  CHECK(without.default_us == 0);
}

TEST_CASE("kernels that work alone but not together are an error that says so") {
  const Setting rules("AUTOTUNE_FAKE_RULES", std::string(kJoint) + "simt:=>kill");
  Watcher watcher;
  const std::atomic<bool> never{false};
  const auto result = test::tune_once(options_of_mlp(), small_mlp(), nullptr, watcher, never);
  REQUIRE_FALSE(result);
  INFO(result.error().message);
  CHECK(result.error().code == ErrorCode::failed);
  CHECK(result.error().message.find("the stages of " + describe(small_mlp()) +
                                    " do not work together") == 0);
}

}  // namespace autotune::tune

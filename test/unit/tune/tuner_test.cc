#include "autotune/tune/tuner.h"

#include <set>

#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using namespace test;

std::string hash_of(const Trial& trial, const Problem& problem) {
  return source_hash(trial.config, traits_of(problem), h200());
}

}  // namespace

TEST_CASE("every strategy finds the known best, and it is crowned") {
  for (const char* strategy : {"exhaustive", "random", "model"}) {
    INFO(strategy);
    const TempFolder folder;
    cache::Store store = open_store(folder);
    Watcher watcher;
    const Problem problem = small_problem();
    const TuneResult result = tuned(fake_options(strategy), problem, &store, watcher);
    REQUIRE(watcher.plans.size() == 1);
    const search::Plan& plan = watcher.plans[0];
    CHECK(plan.survivors.size() >= 12);
    CHECK(to_string(result.winner.config) == test::fastest(plan));
    CHECK(result.match == "exact");
    CHECK(result.crowned);
    CHECK_FALSE(result.cancelled);
    CHECK(result.default_us == Approx(test::fake_time_us(to_string(plan.default_config().config))));
    CHECK(result.winner.measurement.median_us <= result.default_us);

    const auto winner = store.winner(problem_key(problem), fingerprint(h200()));
    REQUIRE(winner);
    REQUIRE(*winner);
    CHECK((*winner)->trial.key.config == to_string(result.winner.config));
    CHECK((*winner)->trial.key.compiler == "nvrtc 99.0");
    CHECK((*winner)->default_us == Approx(result.default_us));
    CHECK(watcher.warnings.empty());
  }
}

TEST_CASE("clocks that sink during a search are divided out, and nothing else") {
  for (const char* told : {"hotter", "untold"}) {  // by the reference's time, or not
    INFO(told);
    const Setting clocks("AUTOTUNE_FAKE_CLOCKS", told);
    Watcher watcher;
    const TuneResult result = tuned(fake_options("model"), small_problem(), nullptr, watcher);
    CHECK(to_string(result.winner.config) == test::fastest(watcher.plans.at(0)));
    CHECK(watcher.trials.size() > 10);
    for (const Trial& trial : watcher.trials) {
      CHECK(trial.measurement.median_us == Approx(test::fake_time_us(to_string(trial.config))));
    }
  }
}

TEST_CASE("each trial is told and stored once, and the counts add up") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Watcher watcher;
  const Problem problem = small_problem();
  const TuneResult result = tuned(fake_options(), problem, &store, watcher);
  const std::size_t survivors = watcher.plans[0].survivors.size();
  CHECK(watcher.trials.size() == survivors);
  std::set<std::string> configs;
  for (const Trial& trial : watcher.trials) configs.insert(to_string(trial.config));
  CHECK(configs.size() == survivors);
  CHECK(result.outcomes.at("ok") == static_cast<std::int64_t>(survivors));
  const auto rows = store.trials(problem_key(problem), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() == survivors);
  CHECK(watcher.progress.back().measured == static_cast<std::int64_t>(survivors));
  CHECK(watcher.progress.back().total == static_cast<std::int64_t>(survivors));
  CHECK(watcher.progress.back().best_us ==
        Approx(test::fake_time_us(to_string(result.winner.config))));
}

TEST_CASE("configs that differ only in run-time parameters share one compilation") {
  const FakeLog log;
  Watcher watcher;
  const Problem problem = small_problem();
  tuned(fake_options(), problem, nullptr, watcher);
  std::set<std::string> codes;
  for (const Trial& trial : watcher.trials) codes.insert(hash_of(trial, problem));
  REQUIRE(codes.size() < watcher.trials.size());
  CHECK(log.lines("compile").size() == codes.size());
  CHECK(log.lines("measure").size() == watcher.trials.size());
}

TEST_CASE("a second problem of the same traits compiles nothing again, nor does a second run") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  FakeLog log;
  Watcher watcher;
  {
    const std::atomic<bool> never{false};
    auto tuner = Tuner::create(h200(), 0, fake_options());
    REQUIRE(tuner);
    REQUIRE(tuner->tune(small_problem(1000), &store, watcher, never));
    CHECK(log.lines("compile").size() > 0);
    log.clear();
    REQUIRE(tuner->tune(small_problem(2000), &store, watcher, never));
    CHECK(log.lines("compile").empty());
  }
  log.clear();
  tuned(fake_options(), small_problem(3000), &store, watcher);
  CHECK(log.lines("compile").empty());
  CHECK_FALSE(log.lines("measure").empty());
}

TEST_CASE("failures of every kind are trials, are stored, and are remembered") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  // Rules for single codes and configs, made from a first look at the plan.
  Watcher look;
  TuneOptions options = fake_options();
  tuned(options, problem, nullptr, look);
  const search::Plan& plan = look.plans[0];
  const KernelTraits traits = traits_of(problem);
  std::vector<std::string> words = {"fail",   "abort", "spill", "serialise", "greedy",
                                    "refuse", "wrong", "fault", "kill"};
  std::string rules;
  std::set<std::string> used = {source_hash(plan.default_config().config, traits, h200())};
  std::map<std::string, Outcome> expected;  // by hash where all configs of a code fail, else config
  const std::map<std::string, Outcome> outcome_of = {
      {"fail", Outcome::compile_failed}, {"abort", Outcome::compile_crashed},
      {"spill", Outcome::spilled},       {"serialise", Outcome::serialised},
      {"greedy", Outcome::over_budget},  {"refuse", Outcome::launch_failed},
      {"wrong", Outcome::wrong_result},  {"fault", Outcome::faulted},
      {"kill", Outcome::faulted}};
  std::size_t next = 0;
  for (const search::Candidate& candidate : plan.survivors) {
    if (next == words.size()) break;
    const std::string hash = source_hash(candidate.config, traits, h200());
    if (!used.insert(hash).second) continue;
    const std::string& word = words[next++];
    std::string needle = to_string(candidate.config);
    const bool of_code = next <= 5;
    expected[of_code ? hash : needle] = outcome_of.at(word);
    if (of_code) {
      needle.clear();
      for (const auto& [name, value] :
           candidate.config.kernel->definitions(candidate.config, traits, h200())) {
        needle += name + "=" + value + "\n";
      }
    }
    rules += needle + "=>" + word + "|";
  }
  REQUIRE(next == words.size());
  const Setting setting("AUTOTUNE_FAKE_RULES", rules);
  Watcher watcher;
  const TuneResult result = tuned(options, problem, &store, watcher);
  std::set<std::string> met;
  for (const Trial& trial : watcher.trials) {
    const std::string text = to_string(trial.config);
    INFO(text);
    Outcome outcome = Outcome::ok;
    for (const std::string& key : {hash_of(trial, problem), text}) {
      const auto found = expected.find(key);
      if (found == expected.end()) continue;
      outcome = found->second;
      met.insert(key);
    }
    CHECK(trial.outcome == outcome);
  }
  CHECK(met.size() == expected.size());
  CHECK(result.outcomes.at("faulted") == 2);
  std::set<Outcome> failures;
  for (const Trial& trial : result.failures) failures.insert(trial.outcome);
  CHECK(failures == std::set<Outcome>{Outcome::compile_failed, Outcome::compile_crashed,
                                      Outcome::over_budget, Outcome::launch_failed,
                                      Outcome::wrong_result, Outcome::faulted});
  CHECK(result.outcomes.at("ok") > 0);
  for (const Trial& trial : watcher.trials) {
    if (trial.outcome == Outcome::over_budget) {
      REQUIRE(trial.verdict);
      CHECK(trial.verdict->rule == Rule::registers);
    }
    if (trial.outcome == Outcome::compile_crashed) {
      CHECK(trial.log.find("signal 6") != std::string::npos);
    }
  }
  const auto rows = store.trials(problem_key(problem), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() == watcher.trials.size());

  // Without the rules everything would work, but what failed is remembered.
  const Setting none("AUTOTUNE_FAKE_RULES", "");
  Watcher again;
  CHECK(tuned(options, problem, &store, again).outcomes == result.outcomes);
  options.limits.keep_slow = true;
  Watcher slow;
  const TuneResult kept = tuned(options, problem, &store, slow);
  CHECK(kept.outcomes.count("spilled") == 0);
  CHECK(kept.outcomes.at("faulted") == 2);
}

TEST_CASE("a cubin that differs from its prediction stops the run with both numbers") {
  const Setting setting("AUTOTUNE_FAKE_RULES", "THREADS=>narrow");
  Watcher watcher;
  const std::atomic<bool> never{false};
  const auto result = test::tune_once(fake_options(), small_problem(), nullptr, watcher, never);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::failed);
  const int threads = watcher.plans[0].default_config().resources.threads;
  CHECK(result.error().message.find("predicted " + std::to_string(threads)) != std::string::npos);
  CHECK(result.error().message.find("the cubin has " + std::to_string(threads / 2)) !=
        std::string::npos);
}

TEST_CASE("when nothing works the error says what became of the configs") {
  const Setting setting("AUTOTUNE_FAKE_RULES", "THREADS=>fail");
  Watcher watcher;
  const std::atomic<bool> never{false};
  const auto result = test::tune_once(fake_options(), small_problem(), nullptr, watcher, never);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::failed);
  CHECK(result.error().message.find("compile_failed") != std::string::npos);
  CHECK(result.error().message.find("error: as asked") != std::string::npos);
}

TEST_CASE("without a compiler or GPU the error says so") {
  const std::atomic<bool> never{false};
  for (const auto& [word, code] :
       {std::pair("no_compiler", ErrorCode::no_compiler), std::pair("no_gpu", ErrorCode::no_gpu)}) {
    const Setting setting("AUTOTUNE_FAKE_HELLO", word);
    Watcher watcher;
    const auto result = test::tune_once(fake_options(), small_problem(), nullptr, watcher, never);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == code);
  }
}

TEST_CASE("the finalists' times are kept as the final had them") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  const Problem problem = small_problem();
  Watcher watcher;
  const TuneResult result = tuned(fake_options(), problem, &store, watcher);
  REQUIRE_FALSE(result.finalists.empty());
  std::size_t others = 0;
  for (const Trial& each : result.finalists) {
    others += each.config != result.winner.config;
    const auto row = store.trial({problem_key(problem), fingerprint(h200()), to_string(each.config),
                                  hash_of(each, problem), "nvrtc 99.0"});
    REQUIRE((row && *row));
    CHECK((*row)->measurement.samples == each.measurement.samples);
  }
  CHECK(others > 0);
}

TEST_CASE("three failures of a kind are told, all are counted") {
  const Setting rules("AUTOTUNE_FAKE_RULES", "STAGES=2=>fail");
  Watcher watcher;
  const TuneResult result = tuned(fake_options(), small_problem(), nullptr, watcher);
  CHECK(result.outcomes.at("compile_failed") > 3);
  CHECK(result.failures.size() == 3);
}

TEST_CASE("a config is raced against the best so far, and what clocks may explain") {
  const FakeLog log;
  Watcher watcher;
  tuned(fake_options(), small_problem(), nullptr, watcher);
  const std::vector<std::string> raced = log.lines("behind");
  REQUIRE(raced.size() == watcher.trials.size());
  CHECK(std::stod(raced[0]) == 0);
  double best = watcher.trials[0].measurement.median_us;
  for (std::size_t i = 1; i < raced.size(); ++i) {
    CHECK(std::stod(raced[i]) == Approx(1.1 * best));
    best = std::min(best, watcher.trials[i].measurement.median_us);
  }
}

TEST_CASE("a cache that cannot be written costs one warning") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  // The schema is taken away under the open store.
  Watcher watcher;
  {
    std::ofstream garbage(store.path(), std::ios::trunc);
    garbage << std::string(1 << 16, 'x');
  }
  const TuneResult result = tuned(fake_options(), small_problem(), &store, watcher);
  CHECK(result.winner.measurement.median_us > 0);
  CHECK_FALSE(result.crowned);
  CHECK(watcher.warnings.size() >= 1);
  CHECK(watcher.warnings.size() <= 2);  // reading and writing
}

}  // namespace autotune::tune

#include "autotune/tune/sweep.h"

#include <limits>
#include <set>
#include <sstream>

#include "search/spread.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using test::h200;
using test::Setting;

SweepOptions fake_sweep(std::size_t trials) {
  SweepOptions options;
  options.trials = trials;
  options.jobs = 2;
  options.space = test::small_space();
  options.worker = AUTOTUNE_FAKE_WORKER;
  return options;
}

struct Swept {
  Expected<bool> complete;
  io::Sweep sweep;
  std::vector<io::SweepRow> told;
  SweepProgress progress;
};

Swept sweep(const SweepOptions& options, const std::optional<io::Sweep>& before = std::nullopt,
            const Sweeper::Deadline& deadline = std::nullopt,
            std::size_t stop_after = std::numeric_limits<std::size_t>::max()) {
  auto sweeper = Sweeper::create(h200(), 0, options);
  REQUIRE(sweeper);
  Swept swept{false, {}, {}, {}};
  std::atomic<bool> stop{false};
  swept.complete = sweeper->sweep(test::small_problem(), before, nullptr, deadline, stop,
                                  [&](const io::Sweep& all, const io::SweepRow* row,
                                      const SweepProgress& progress) -> Expected<void> {
                                    swept.sweep = all;
                                    swept.progress = progress;
                                    if (row) swept.told.push_back(*row);
                                    stop = swept.told.size() >= stop_after;
                                    return {};
                                  });
  return swept;
}

// The drawn configs in the order of the draw.
std::vector<std::string> drawn(std::size_t trials) {
  const auto plan = search::make_plan(test::small_problem(), h200(), test::small_space(), {});
  REQUIRE(plan);
  std::vector<std::string> configs;
  for (const std::size_t i : search::draw_spread(*plan, trials, fake_sweep(trials).seed)) {
    configs.push_back(to_string(plan->survivors[i].config));
  }
  return configs;
}

// Rules by which the first few fail.
std::string failing(const std::vector<std::string>& configs, std::size_t count) {
  std::string rules;
  for (std::size_t i = 0; i < count; ++i) rules += configs.at(i) + "=>kill|";
  return rules;
}

}  // namespace

TEST_CASE("a sweep times each drawn config beside the reference") {
  const Swept swept = sweep(fake_sweep(40));
  REQUIRE(swept.complete);
  CHECK(*swept.complete);
  REQUIRE(swept.told.size() == 40);
  const std::string reference = to_string(swept.sweep.reference);
  for (const io::SweepRow& row : swept.told) {
    REQUIRE(row.outcome == Outcome::ok);
    const double us = test::fake_time_us(to_string(row.config));
    CHECK(row.reference_us == Approx(test::fake_time_us(reference)));
    CHECK(row.ratio * row.reference_us == Approx(us));
  }
}

TEST_CASE("a sweep keeps what failed, with its outcome") {
  const Swept good = sweep(fake_sweep(40));
  const std::string broken = to_string(good.told[5].config);
  const Setting rules("AUTOTUNE_FAKE_RULES", broken + "=>kill");
  const Swept swept = sweep(fake_sweep(40));
  REQUIRE(swept.complete);
  REQUIRE(swept.told.size() == 40);
  for (const io::SweepRow& row : swept.told) {
    CHECK(row.outcome == (to_string(row.config) == broken ? Outcome::faulted : Outcome::ok));
  }
}

TEST_CASE("a sweep draws the same configs whatever their results") {
  const auto configs = [](const Swept& swept) {
    std::set<std::string> texts;
    for (const io::SweepRow& row : swept.told) texts.insert(to_string(row.config));
    return texts;
  };
  const auto first = configs(sweep(fake_sweep(40)));
  const Setting rules("AUTOTUNE_FAKE_RULES", "BLOCK_K=16=>fail");
  const Swept failing = sweep(fake_sweep(40));
  CHECK(configs(failing) == first);
  CHECK(std::any_of(failing.told.begin(), failing.told.end(), [](const io::SweepRow& row) {
    return row.outcome == Outcome::compile_failed;
  }));
  SweepOptions other = fake_sweep(40);
  other.seed = 2;
  CHECK(configs(sweep(other)) != first);
}

TEST_CASE("a sweep goes on where an earlier run ended") {
  const Swept part = sweep(fake_sweep(15));
  REQUIRE(part.told.size() == 15);
  SweepOptions options = fake_sweep(40);
  const Swept rest = sweep(options, part.sweep);
  REQUIRE(rest.complete);
  CHECK(rest.told.size() == 25);
  CHECK(rest.sweep.rows.size() == 40);
  CHECK(rest.sweep.runs.size() == 2);
  CHECK(rest.sweep.reference == part.sweep.reference);
}

TEST_CASE("a sweep tells how far it is, how many failed and the best so far") {
  const Setting rules("AUTOTUNE_FAKE_RULES", "BLOCK_K=16=>fail");
  SweepOptions options = fake_sweep(100'000);  // more than there are
  const Swept swept = sweep(options);
  REQUIRE(swept.complete);
  std::size_t failed = 0;
  double best = 1e9;
  for (const io::SweepRow& row : swept.told) {
    failed += row.outcome != Outcome::ok;
    if (row.outcome == Outcome::ok) best = std::min(best, row.ratio);
  }
  REQUIRE(failed > 0);
  CHECK(swept.progress.done == swept.told.size());
  CHECK(swept.progress.total == swept.told.size());
  CHECK(swept.progress.failed == failed);
  CHECK(swept.progress.best == best);
}

TEST_CASE("a stopped sweep is not complete") {
  const Swept swept = sweep(fake_sweep(40), std::nullopt, std::nullopt, 3);
  REQUIRE(swept.complete);
  CHECK_FALSE(*swept.complete);
  CHECK(swept.told.size() == 3);
}

TEST_CASE("what is expected to be far slower than the reference is compared a few times only") {
  SweepOptions options = fake_sweep(300);
  options.space = test::small_space(5);
  const auto plan = search::make_plan(test::small_problem(), h200(), options.space, {});
  REQUIRE(plan);
  const auto predicted = [&](const std::string& config) {
    for (const search::Candidate& each : plan->survivors) {
      if (to_string(each.config) == config) return each.predicted_us;
    }
    FAIL(config);
    return 0.0;
  };
  const test::FakeLog log;
  const Swept swept = sweep(options);
  REQUIRE(swept.complete);
  const double reference = predicted(to_string(swept.sweep.reference));
  const std::vector<std::string> compared = log.lines("compare");
  const std::vector<std::string> rounds = log.lines("rounds");
  REQUIRE(compared.size() == rounds.size());
  std::size_t few = 0;
  for (std::size_t i = 1; i < compared.size(); ++i) {  // but the reference's own
    std::istringstream words(compared[i]);
    std::string config;
    words >> config >> config;
    INFO(config << ": " << predicted(config) / reference);
    const bool slow = predicted(config) > 3.5 * reference;
    if (slow) CHECK(rounds[i] == "2");
    if (predicted(config) < 2.5 * reference) CHECK(rounds[i] == "5");
    few += slow;
  }
  CHECK(few > 0);
}

TEST_CASE("a sweep ends at its deadline") {
  const Swept swept = sweep(fake_sweep(40), std::nullopt, std::chrono::steady_clock::now());
  REQUIRE(swept.complete);
  CHECK_FALSE(*swept.complete);
  CHECK(swept.told.size() < 40);
}

TEST_CASE("a default config that cannot run is not the reference") {
  const Swept good = sweep(fake_sweep(40));
  const std::string first = to_string(good.sweep.reference);
  const Setting rules("AUTOTUNE_FAKE_RULES", first + "=>kill");
  const Swept swept = sweep(fake_sweep(40));
  REQUIRE(swept.complete);
  CHECK(to_string(swept.sweep.reference) != first);
  CHECK(swept.told.size() == 40);
}

TEST_CASE("the reference is the first of the drawn configs that works, of some that are tried") {
  const std::vector<std::string> configs = drawn(40);
  {
    const Setting rules("AUTOTUNE_FAKE_RULES", failing(configs, 5));
    const Swept swept = sweep(fake_sweep(40));
    REQUIRE(swept.complete);
    CHECK(to_string(swept.sweep.reference) == configs[5]);
  }
  const Setting rules("AUTOTUNE_FAKE_RULES", failing(configs, 20));
  const Swept swept = sweep(fake_sweep(40));
  REQUIRE_FALSE(swept.complete);
  CHECK(swept.complete.error().code == ErrorCode::failed);
  CHECK(swept.complete.error().message.find("no config works as the reference for " +
                                            describe(test::small_problem())) == 0);
  CHECK(swept.told.empty());
}

TEST_CASE("the reference is taken to time others whether it spills or not, and has a time itself") {
  const Setting rules("AUTOTUNE_FAKE_RULES", "THREADS=>spill");
  const Swept swept = sweep(fake_sweep(40));
  REQUIRE(swept.complete);
  REQUIRE(swept.told.size() == 40);
  for (const io::SweepRow& row : swept.told) {
    const bool reference = row.config == swept.sweep.reference;
    CHECK(row.outcome == (reference ? Outcome::ok : Outcome::spilled));
  }
  SweepOptions slow = fake_sweep(40);
  slow.limits.keep_slow = true;
  for (const io::SweepRow& row : sweep(slow).told) CHECK(row.outcome == Outcome::ok);
}

TEST_CASE("a sweep tells why a config whose code is there has no time") {
  const std::string last = drawn(40).back();
  for (const auto& [word, outcome] : {std::pair("serialise", Outcome::serialised),
                                      {"greedy", Outcome::over_budget},
                                      {"spill", Outcome::spilled}}) {
    INFO(word);
    const auto config = parse_config(last, *find_family("gemm"));
    REQUIRE(config);
    std::string needle;  // its code
    for (const auto& [name, value] :
         config->kernel->definitions(*config, traits_of(test::small_problem()), h200())) {
      needle += name + "=" + value + "\n";
    }
    const Setting rules("AUTOTUNE_FAKE_RULES", needle + "=>" + word);
    const Swept swept = sweep(fake_sweep(40));
    REQUIRE(swept.complete);
    const auto row =
        std::find_if(swept.told.begin(), swept.told.end(),
                     [&](const io::SweepRow& each) { return to_string(each.config) == last; });
    REQUIRE(row != swept.told.end());
    CHECK(row->outcome == outcome);
    CHECK(row->ratio == 0);
  }
}

}  // namespace autotune::tune

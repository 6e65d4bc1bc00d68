#include "autotune/tune/sweep.h"

#include <set>

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

const std::atomic<bool> kNever{false};

struct Swept {
  Expected<bool> complete;
  io::Sweep sweep;
  std::vector<io::SweepRow> told;
};

Swept sweep(const SweepOptions& options, const std::optional<io::Sweep>& before = std::nullopt,
            const Sweeper::Deadline& deadline = std::nullopt) {
  auto sweeper = Sweeper::create(h200(), 0, options);
  REQUIRE(sweeper);
  Swept swept{false, {}, {}};
  swept.complete = sweeper->sweep(
      test::small_problem(), before, nullptr, deadline, kNever,
      [&](const io::Sweep& all, const io::SweepRow* row, const SweepProgress&) -> Expected<void> {
        swept.sweep = all;
        if (row) swept.told.push_back(*row);
        return {};
      });
  return swept;
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

}  // namespace autotune::tune

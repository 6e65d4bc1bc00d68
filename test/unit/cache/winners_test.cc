#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

Store fresh(const TempFolder& folder) {
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  return std::move(*store);
}

WinnerRecord winner_of(const TrialRecord& trial) { return {trial, 2.5, true, 180.0, 33.0}; }

std::optional<WinnerRecord> found(const Store& store, const TrialRecord& trial) {
  const auto winner = store.winner(trial.key.problem_key, trial.key.device_fingerprint);
  REQUIRE(winner);
  return *winner;
}

TEST_CASE("a winner comes back with its trial") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord trial = sample_trial(3);
  CHECK_FALSE(found(store, trial));
  REQUIRE(store.record(trial));
  REQUIRE(store.crown(winner_of(trial)));
  const auto winner = found(store, trial);
  REQUIRE(winner);
  CHECK(winner->trial.id == trial.id);
  CHECK(winner->trial.key == trial.key);
  CHECK(winner->trial.problem == trial.problem);
  CHECK(winner->trial.measurement.median_us == 103.0);
  CHECK(winner->lead_percent == 2.5);
  CHECK(winner->tie);
  CHECK(winner->default_us == 180.0);
  CHECK(winner->seconds == 33.0);
}

TEST_CASE("crowning stores a trial that nobody recorded") {
  const TempFolder folder;
  Store store = fresh(folder);
  const TrialRecord trial = sample_trial(3);
  REQUIRE(store.crown(winner_of(trial)));
  CHECK(found(store, trial)->trial.key == trial.key);
  CHECK(store.trials(trial.key.problem_key, kDevice)->size() == 1);
}

TEST_CASE("the next winner replaces the last") {
  const TempFolder folder;
  Store store = fresh(folder);
  REQUIRE(store.crown(winner_of(sample_trial(3))));
  REQUIRE(store.crown({sample_trial(1)}));
  const auto winner = found(store, sample_trial(1));
  REQUIRE(winner);
  CHECK(winner->trial.key.config == sample_trial(1).key.config);
  CHECK_FALSE(winner->tie);
  CHECK(store.winners("gemm", "")->size() == 1);
}

TEST_CASE("a winner that failed when it was tried again is none") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord trial = sample_trial(3);
  REQUIRE(store.crown(winner_of(trial)));
  trial.outcome = Outcome::wrong_result;
  REQUIRE(store.record(trial));
  CHECK_FALSE(found(store, trial));
  CHECK(store.winners("gemm", "")->empty());
}

TEST_CASE("winners are listed by family and device") {
  const TempFolder folder;
  Store store = fresh(folder);
  for (const std::int64_t m : {300, 100, 200}) REQUIRE(store.crown(winner_of(sample_trial(1, m))));
  TrialRecord other_gpu = sample_trial(1, 100);
  other_gpu.key.device_fingerprint = "another";
  REQUIRE(store.crown(winner_of(other_gpu)));
  TrialRecord other_family = sample_trial(1, 100);
  other_family.problem.family = "geglu_mlp";
  other_family.key.problem_key = problem_key(other_family.problem);
  REQUIRE(store.crown(winner_of(other_family)));

  const auto here = store.winners("gemm", kDevice);
  REQUIRE(here);
  REQUIRE(here->size() == 3);
  CHECK((*here)[0].trial.problem.m == 100);
  CHECK((*here)[1].trial.problem.m == 200);
  CHECK((*here)[2].trial.problem.m == 300);
  CHECK(store.winners("gemm", "")->size() == 4);
  CHECK(store.winners("geglu_mlp", "")->size() == 1);
  CHECK(store.winners("conv", "")->empty());
}

}  // namespace
}  // namespace autotune::cache

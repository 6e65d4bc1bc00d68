// `autotune cache verify`: what it says of winners that are stored soundly and yet of no use.
#include "autotune/io/builtin.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using test::contains;
using test::run;
using test::TempFolder;

namespace {

void crown(const std::string& file, const std::string& config, const std::string& fingerprint) {
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store);
  cache::WinnerRecord winner;
  winner.trial.problem.m = winner.trial.problem.n = winner.trial.problem.k = 64;
  winner.trial.problem = *checked(winner.trial.problem);
  winner.trial.key = {problem_key(winner.trial.problem), fingerprint, config, "5eed", "nvrtc 13.0"};
  winner.trial.measurement.median_us = 10;
  REQUIRE(store->crown(winner));
}

}  // namespace

TEST_CASE("verify warns of winners whose config does not exist or cannot run") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  const std::string known = fingerprint(*io::find_device("nvidia-h200"));
  const std::string unknown = "Card 9 cc=90 sms=1 smem=232448 memory=1GiB";
  const auto told = [&](const std::string& config, const std::string& print) {
    crown(file, config, print);
    const auto ran = run({"cache", "verify", "--cache", file});
    CHECK(ran.code == 0);
    CHECK(contains(ran.out, "sound"));
    return ran.err;
  };
  for (const char* config : {"mma:block_n=113", "mma:block_q=64", "sparse:block_m=64"}) {
    const std::string err = told(config, known);
    CHECK(contains(err, "64x64x64 bf16 tn on NVIDIA H200: never an answer"));
    CHECK(contains(err, config));
  }
  CHECK(told("mma", known).empty());
  CHECK(contains(told("mma:block_q=64", unknown), "on Card 9: never an answer"));
  CHECK(told("mma", unknown).empty());
}

// Which winners and trials the words given to `autotune cache` list, show and remove name.
#include <nlohmann/json.hpp>

#include "autotune/io/builtin.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using nlohmann::json;
using test::contains;
using test::run;
using test::TempFolder;

namespace {

void crown(const std::string& file, Problem problem, const std::string& slug = "nvidia-h200") {
  problem = *checked(problem);
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store);
  cache::WinnerRecord winner;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(*io::find_device(slug)), "mma", "5eed",
                      "nvrtc 13.0"};
  winner.trial.measurement.median_us = 10;
  REQUIRE(store->crown(winner));
}

Problem problem_of(const std::string& family, std::int64_t m, std::int64_t n, std::int64_t k,
                   DType dtype = DType::bf16) {
  Problem problem;
  problem.family = family;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = problem.out_dtype = dtype;
  return problem;
}

// Three problems in all.
void fill(const std::string& file) {
  crown(file, problem_of("gemm", 4096, 4096, 4096));
  crown(file, problem_of("gemm", 128, 4096, 512, DType::fp16));
  crown(file, problem_of("geglu_mlp", 128, 1524, 512));
}

std::size_t listed(const std::string& file, const std::string& pattern) {
  const auto ran = run({"cache", "list", pattern, "--cache", file, "--json", "-"});
  REQUIRE(ran.code == 0);
  return json::parse(ran.out)["winners"].size();
}

}  // namespace

TEST_CASE("a word that no winner has is named") {
  const TempFolder folder;
  fill(folder / "a.db");
  const auto said = [&](const std::string& pattern) {
    return run({"cache", "list", pattern, "--cache", folder / "a.db"}).out;
  };
  CHECK(said("beta=1 m=128 cold") ==
        "No winner matches 'beta=1 m=128 cold': none has 'beta=1' or 'cold'.\n");
  CHECK(said("m=4096 k=512") == "No winner matches 'm=4096 k=512'.\n");
}

TEST_CASE("words in any order, and as list prints them, find their winners") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  fill(file);
  CHECK(listed(file, "n=4096 m=4096") == 1);
  CHECK(listed(file, "m=4096 k=4096") == 1);
  CHECK(listed(file, "tokens=128") == 1);
  CHECK(listed(file, "hidden=512 tokens=128 intermediate=1524") == 1);
  CHECK(listed(file, "family=geglu_mlp") == 1);
  CHECK(listed(file, "bf16") == 2);
  CHECK(listed(file, "m=128") == 2);
  CHECK(listed(file, "m=12") == 0);
}

TEST_CASE("remove takes what list lists of the same words") {
  const TempFolder folder;
  for (const char* pattern : {"bf16", "tokens=128", "k=512 m=128", "family=gemm"}) {
    INFO(pattern);
    const std::string file = folder / pattern;
    fill(file);
    const std::size_t found = listed(file, pattern);
    const auto ran = run({"cache", "remove", pattern, "--cache", file, "--json", "-"});
    CHECK(ran.code == 0);
    CHECK(json::parse(ran.out)["removed"] == found);
    CHECK(listed(file, pattern) == 0);
    CHECK(listed(file, "tn") == 3 - found);
  }
}

TEST_CASE("remove fails where nothing matches, and takes no blank for everything") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  fill(file);
  for (const char* pattern : {"m=17", " ", "4096"}) {
    const auto ran = run({"cache", "remove", pattern, "--cache", file});
    CHECK(ran.code == 1);
    CHECK(contains(ran.err, "'" + std::string(pattern) + "'"));
    CHECK(listed(file, "tn") == 3);
  }
}

TEST_CASE("one GPU's winners are listed, shown and removed") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  fill(file);
  crown(file, problem_of("gemm", 4096, 4096, 4096), "nvidia-h100-80gb-hbm3");
  const auto on = [&](const std::string& action, const std::vector<std::string>& more) {
    std::vector<std::string> args = {"cache", action, "--cache", file, "--json", "-"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  for (const char* action : {"list", "show"}) {
    const auto winners = [&](const std::vector<std::string>& more) {
      return json::parse(on(action, more).out)["winners"];
    };
    CHECK(winners({}).size() == 4);
    CHECK(winners({"--device", "nvidia-h200"}).size() == 3);
    CHECK(winners({"m=4096", "--device", "NVIDIA H100 80GB HBM3"}).size() == 1);
    CHECK(winners({"m=128", "--device", "nvidia-h100-80gb-hbm3"}).empty());
    CHECK(on(action, {"--device", "h2oo"}).code == 2);
  }
  CHECK(run({"cache", "list", "m=128", "--cache", file, "--device", "nvidia-b200"}).out ==
        "No winner on nvidia-b200 matches 'm=128'.\n");

  const auto none = on("remove", {"--all", "--device", "nvidia-b200"});
  CHECK(none.code == 1);
  CHECK(contains(none.err, "no trials on nvidia-b200"));
  CHECK(on("remove", {"--device", "nvidia-h200"}).code == 2);  // neither words nor --all
  CHECK(json::parse(on("remove", {"m=4096", "--device", "nvidia-h200"}).out)["removed"] == 1);
  CHECK(listed(file, "tn") == 3);
  CHECK(listed(file, "m=4096") == 1);
  CHECK(json::parse(on("remove", {"--all", "--device", "nvidia-h200"}).out)["removed"] == 2);
  CHECK(listed(file, "tn") == 1);
}

TEST_CASE("a GPU that only the cache knows is named as list prints it") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  fill(file);
  {
    auto store = cache::Store::open(file, cache::Access::read_write);
    REQUIRE(store);
    cache::WinnerRecord winner;
    winner.trial.problem = *checked(problem_of("gemm", 64, 64, 64));
    winner.trial.key = {problem_key(winner.trial.problem),
                        "Card 9 cc=90 sms=1 smem=232448 memory=1GiB", "mma", "5eed", "nvrtc 13.0"};
    REQUIRE(store->crown(winner));
  }
  CHECK(contains(run({"cache", "list", "--device", "Card 9", "--cache", file}).out, "64x64x64"));
  CHECK(run({"cache", "list", "m=1", "--device", "Card 9", "--cache", file}).code == 0);
  CHECK(run({"cache", "remove", "--all", "--device", "Card 9", "--cache", file}).out ==
        "Removed 1 trial.\n");
}

TEST_CASE("the help of cache says what a pattern may be") {
  CHECK(contains(run({"cache", "--help"}).out, "PATTERN is words that must all be true"));
}

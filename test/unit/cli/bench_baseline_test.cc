#include "autotune/cli/bench_baseline.h"

#include <filesystem>
#include <sstream>

#include "autotune/cli/config_choice.h"
#include "autotune/io/builtin.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cli {
namespace {

Problem square(std::int64_t size) {
  Problem problem;
  problem.m = problem.n = problem.k = size;
  return checked(problem).value();
}

const Family& family() { return *find_family("gemm"); }
const DeviceSpec& h200() { return *io::find_device("nvidia-h200"); }
Config config_of(const std::string& text) { return parse_config(text, family()).value(); }

Expected<BenchBaseline> read(const std::string& text) {
  Options options;
  options.baseline = text;
  return read_bench_baseline(options, family());
}

struct Added {
  std::vector<tune::BenchItem> items;
  std::string warnings;
};

Added added(const std::string& text, const std::vector<Problem>& problems) {
  std::ostringstream out;
  std::ostringstream err;
  Output output({out, err, 0}, "", 0);
  Added result;
  for (const Problem& problem : problems) result.items.push_back({problem, config_of("mma")});
  const auto baseline = read(text);
  REQUIRE(baseline);
  CHECK(baseline->any());
  const search::Space& space = *io::default_space("gemm");
  const lookup::Bounds bounds{&space, {}};
  REQUIRE(add_baselines(*baseline, family(), h200(), bounds, output, result.items));
  result.warnings = err.str();
  return result;
}

}  // namespace

TEST_CASE("a baseline is cuBLAS, nothing, a config or a cache") {
  CHECK_FALSE(read("")->any());
  CHECK_FALSE(read("none")->any());
  CHECK(read("cublas")->cublas);
  CHECK(read("mma:block_m=64")->config == "mma:block_m=64");
  for (const char* wrong : {"cutlass", "mma:blok_m=64", "/no/such/file.db"}) {
    REQUIRE_FALSE(read(wrong));
    CHECK(read(wrong).error().code == ErrorCode::bad_input);
    CHECK(read(wrong).error().message.find("--baseline") == 0);
  }
}

TEST_CASE("a config as baseline is completed for each problem") {
  const Added result = added("mma:block_m=64,block_n=128", {square(4096), square(256)});
  for (const tune::BenchItem& item : result.items) {
    REQUIRE(item.baseline);
    CHECK(value_of(*item.baseline, "block_m") == 64);
    CHECK(value_of(*item.baseline, "block_n") == 128);
    const search::Space& space = *io::default_space("gemm");
    const auto completed = choose_for("--baseline", "mma:block_m=64,block_n=128", item.problem,
                                      h200(), lookup::Bounds{&space, {}});
    REQUIRE(completed);
    CHECK(*item.baseline == *completed);
  }
  CHECK(result.warnings.empty());
}

TEST_CASE("another cache's winners are the baselines of their problems") {
  const cache::testing::TempFolder folder;
  const std::filesystem::path file = folder / "before.db";
  const Config won = config_of("mma:block_m=64,block_n=256,stages=4");
  {
    auto store = cache::Store::open(file, cache::Access::read_write);
    REQUIRE(store);
    cache::WinnerRecord winner;
    winner.trial.problem = square(512);
    winner.trial.key = {problem_key(square(512)), fingerprint(h200()), to_string(won), "hash",
                        "nvrtc 13.0"};
    winner.trial.measurement.median_us = 9;
    REQUIRE(store->crown(winner));
  }
  const Added result = added(file.string(), {square(4096), square(512)});
  CHECK_FALSE(result.items[0].baseline);
  CHECK(result.warnings.find("no winner of 4096x4096x4096 bf16 tn there") != std::string::npos);
  REQUIRE(result.items[1].baseline);
  CHECK(*result.items[1].baseline == won);
}

}  // namespace autotune::cli

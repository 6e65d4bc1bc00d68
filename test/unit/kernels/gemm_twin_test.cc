// What a GEMM's host twin hands to the device at the far end of its dimensions. (Its resources are
// tested in test/unit/search, its layout against the device source in test/compile.)
#include "kernels/gemm/gemm_twin.h"

#include <cstring>
#include <limits>

#include "kernels/gemm/args.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Problem product(std::int64_t m, std::int64_t n) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = 1;
  const auto whole = checked(problem);
  REQUIRE(whole);
  return *whole;
}

Config config_of(std::string_view text) {
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

GemmArgs args_of(const Config& config, const Problem& problem) {
  const LaunchPlan plan = config.kernel->launch_plan(config, problem, {}, {}, 0);
  GemmArgs args;
  REQUIRE(plan.params_size == sizeof(args));
  std::memcpy(&args, plan.params.data(), sizeof(args));
  return args;
}

TEST_CASE("a walk is never wider than there are tiles, so that a group's tiles count in 32 bits") {
  const Config along_m = config_of("mma:block_m=16,block_n=16,raster=0,swizzle=64");
  const GemmArgs tall = args_of(along_m, product(kMost, 1));
  CHECK(tall.tiles_m == 134217728);
  CHECK(tall.swizzle == 1);
  CHECK(args_of(along_m, product(160, 1600)).swizzle == 64);
  const Config along_n = config_of("simt:block_m=16,block_n=16,raster=1,swizzle=64");
  CHECK(args_of(along_n, product(160, 1600)).swizzle == 10);
}

TEST_CASE("--max-sms shortens the grid, but not to hide more tiles than 32 bits count") {
  const Config config = config_of("mma:block_m=16,block_n=16");
  const auto grid = [&](const Problem& problem, int max_sms) {
    return config.kernel->resources(config, problem, {}, max_sms).grid;
  };
  CHECK(grid(product(160, 160), 0) == 100);
  CHECK(grid(product(160, 160), 8) == 8);
  CHECK(grid(product(16, 16), 8) == 1);
  CHECK(grid(product(kMost, kMost), 8) == grid(product(kMost, kMost), 0));
  CHECK(grid(product(kMost, kMost), 8) > kMost);
}

}  // namespace
}  // namespace autotune

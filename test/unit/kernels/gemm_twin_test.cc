// What a GEMM's host twin hands to the device at the far end of its dimensions. (Its resources are
// tested in test/unit/search, its layout against the device source in test/compile.)
#include "kernels/gemm/gemm_twin.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

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

TEST_CASE("the reciprocals of the tile order divide exactly") {
  const auto check = [](Reciprocal reciprocal, std::uint64_t divisor, std::uint32_t value) {
    const auto product = static_cast<unsigned __int128>(reciprocal) * value;
    const auto quotient = reciprocal == 0 ? value : static_cast<std::uint32_t>(product >> 64);
    CAPTURE(divisor, value);
    CHECK(quotient == value / divisor);
  };
  for (const std::int64_t m : {16, 48, 1600, 112016, 1 << 30}) {
    for (const int swizzle : {1, 2, 3, 7, 8, 16, 64}) {
      const std::string text =
          fmt::format("mma:block_m=16,block_n=16,raster=0,swizzle={}", swizzle);
      const GemmArgs args = args_of(config_of(text), product(m, 1040));
      const std::uint64_t group = std::uint64_t{1} * args.tiles_m * args.swizzle;
      for (const std::uint64_t near : {group, 2 * group, 17 * group, std::uint64_t{1} << 31}) {
        for (const int off : {-1, 0, 1}) {
          const auto value = static_cast<std::uint32_t>(near + off);
          check(args.of_group, group, value);
          check(args.of_step, args.swizzle, value);
          const int last = args.tiles_n % args.swizzle;
          if (last != 0) check(args.of_last_step, last, value);
        }
      }
    }
  }
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

LaunchPlan plan_of(const Config& config, const Problem& problem) {
  DeviceSpec device;
  device.sm_count = 132;
  return config.kernel->launch_plan(config, problem, device, {1 << 20, 2 << 20, 3 << 20, 0}, 0);
}

TEST_CASE("wgmma hands the copy engine each operand as it lies, in boxes of 128 bytes") {
  Problem problem = product(1000, 2000);
  problem.k = 512;
  problem.lda = 512;
  problem.ldb = 2048;
  problem.ldc = 2000;
  problem.layout = Layout::tt;
  const LaunchPlan plan =
      plan_of(config_of("wgmma:block_m=128,block_n=192,block_k=64,cluster_m=2"), problem);
  REQUIRE(plan.map_count == 3);
  const TensorMap& a = plan.maps[0];
  CHECK(a.address == 1 << 20);
  CHECK((a.inner == 512 && a.outer == 1000 && a.pitch_bytes == 1024));
  CHECK((a.box_inner == 64 && a.box_outer == 128 && a.swizzle_bytes == 128));
  const TensorMap& b = plan.maps[1];  // contiguous along n; the two blocks load half of k each
  CHECK((b.inner == 2000 && b.outer == 512 && b.pitch_bytes == 4096));
  CHECK((b.box_inner == 64 && b.box_outer == 32 && b.swizzle_bytes == 128));
  const TensorMap& c = plan.maps[2];
  CHECK((c.inner == 2000 && c.outer == 1000 && c.pitch_bytes == 4000));
  CHECK((c.box_inner == 64 && c.box_outer == 16 && c.swizzle_bytes == 128));
  for (const TensorMap& map : plan.maps) CHECK(map.offset + 128 <= plan.params_size);
  CHECK(plan.cluster[0] == 2);
  CHECK(plan.grid[0] == 4 * 11 * 2);  // clusters of 256 x 192
}

TEST_CASE("one row of A is handed over as K-major, whatever its layout is called") {
  Problem problem = product(1, 2000);
  problem.k = 515;
  problem.layout = Layout::nt;
  problem.lda = 1;
  problem.ldb = problem.ldc = 2000;
  const Config config = config_of("wgmma:block_m=64,block_n=128,block_k=64");
  const LaunchPlan plan = plan_of(config, problem);
  CHECK((plan.maps[0].inner == 515 && plan.maps[0].outer == 1));
  CHECK(plan.maps[0].pitch_bytes == 520 * 2);
  CHECK((plan.maps[1].inner == 2000 && plan.maps[1].outer == 515));
  const auto as_tt = [](Problem p) {
    p.layout = Layout::tt;
    p.lda = 515;
    return p;
  };
  CHECK((plan_of(config, as_tt(problem)).params == plan.params));
  const DeviceSpec device;
  CHECK(config.kernel->work(config, problem, device).load_bytes_per_k_tile ==
        config.kernel->work(config, as_tt(problem), device).load_bytes_per_k_tile);
}

TEST_CASE("wgmma's grid is one block per SM, in whole clusters; rows of C that TMA cannot write") {
  Problem large = product(8192, 8192);
  CHECK(plan_of(config_of("wgmma:block_m=128,block_n=128"), large).grid[0] == 132);
  CHECK(plan_of(config_of("wgmma:block_m=128,block_n=128,cluster_n=2"), large).grid[0] == 132);
  const Config config = config_of("wgmma:block_m=128,block_n=168");
  DeviceSpec odd;
  odd.sm_count = 131;
  CHECK(config.kernel->resources(config_of("wgmma:cluster_n=2"), large, odd, 0).grid == 130);
  large.n = large.ldc = 8190;
  CHECK(plan_of(config, large).map_count == 2);
  large.ldc = 8192;
  CHECK(plan_of(config, large).maps[2].box_inner == 56);  // 168 columns in three stores
  CHECK(plan_of(config, large).maps[2].swizzle_bytes == 0);
}

TEST_CASE("wgmma serves what the copy engine can load, and the family falls back to mma") {
  DeviceSpec hopper;
  hopper.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  const HostTwin& wgmma = *find_kernel(*find_family("gemm"), "wgmma");
  KernelTraits traits;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  CHECK_FALSE(wgmma.unsupported(traits, {}).empty());
  traits.align_c = 2;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  traits.align_b = 8;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
  traits.align_b = 16;
  traits.dtype = DType::tf32;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  traits.layout = Layout::tt;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
  traits.dtype = DType::fp32;
  traits.layout = Layout::tn;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
}

}  // namespace
}  // namespace autotune

// What a GEMM's host twin hands to the device at the far end of its dimensions. (Its resources are
// tested in test/unit/search, its layout against the device source in test/compile.)
#include "kernels/gemm/gemm_twin.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

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

TEST_CASE("mma serves fp32 in parts of bf16, unless FFMA is asked for") {
  DeviceSpec ampere;
  ampere.limits.mma_dtypes = {"f16", "bf16", "tf32"};
  DeviceSpec turing;
  turing.limits.mma_dtypes = {"f16"};
  const HostTwin& mma = *find_kernel(*find_family("gemm"), "mma");
  const HostTwin& simt = *find_kernel(*find_family("gemm"), "simt");
  KernelTraits traits;
  traits.dtype = traits.out_dtype = DType::fp32;
  CHECK(mma.unsupported(traits, ampere).empty());
  CHECK_FALSE(mma.unsupported(traits, turing).empty());
  traits.exact_fp32 = true;
  CHECK(mma.unsupported(traits, ampere) == "--exact-fp32 asks for FFMA");
  CHECK(simt.unsupported(traits, ampere).empty());
}

TEST_CASE("fp32 in parts takes the shared memory of tf32, and registers for the parts") {
  const Config config =
      config_of("mma:block_m=64,block_n=64,block_k=32,stages=3,warps_m=2,warps_n=2");
  Problem problem = product(1024, 1024);
  problem.k = problem.lda = problem.ldb = 1024;
  problem.dtype = DType::tf32;
  problem.out_dtype = DType::fp32;
  const Resources tf32 = config.kernel->resources(config, problem, {}, 0);
  problem.dtype = DType::fp32;
  const Resources fp32 = config.kernel->resources(config, problem, {}, 0);
  CHECK(fp32.smem_bytes == 3 * (64 + 64) * 32 * 4);
  CHECK(fp32.smem_bytes == tf32.smem_bytes);
  CHECK(fp32.threads == tf32.threads);
  CHECK(fp32.barriers == 1);
  CHECK(fp32.workspace_bytes == 0);
  // Warp tiles of 32 x 32: 32 accumulators, 16 words of each of two steps of 8, 48 of parts.
  CHECK(fp32.register_demand == 32 + 48 + 56);
  CHECK(fp32.registers == 32 + 32 + 48 + 6 * 8 + 40);
  const std::vector<Term> terms = config.kernel->register_terms(config, traits_of(problem));
  CHECK(terms[2].label == "parts");
  CHECK(terms[2].value == 48);
}

TEST_CASE("fp32 in parts is worth a sixth of bf16 where the tensor cores are the ceiling") {
  Problem problem = product(4096, 4096);
  problem.dtype = problem.out_dtype = DType::fp32;
  DeviceSpec device;
  device.sm_count = 132;
  device.boost_mhz = 1980;
  device.f16_bf16_tflops = 989;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  const auto rate = [&](const char* text) {
    const Config config = config_of(text);
    const Work work = config.kernel->work(config, problem, device);
    CHECK(work.unit == Work::Unit::tensor);
    return work.unit_rate;
  };
  const double large = rate("mma:block_m=128,block_n=256,warps_m=1,warps_n=2");
  CHECK(large == Approx(0.62 / 6));
  const double small = rate("mma:block_m=32,block_n=32,warps_m=2,warps_n=2");
  // 116 instructions a step of 16 in k of a warp tile of 16 x 16, whose products take 84 clocks.
  CHECK(small / large == Approx(0.72).epsilon(0.02));
  // A slower tensor core is waited for, whatever the warp tile.
  device.f16_bf16_tflops = 100;
  CHECK(rate("mma:block_m=32,block_n=32,warps_m=2,warps_n=2") == Approx(0.62 / 6));
}

}  // namespace
}  // namespace autotune

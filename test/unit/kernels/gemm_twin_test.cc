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
#include "kernels/gemm/mma_args.h"
#include "kernels/gemm/wgmma_args.h"
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

TEST_CASE("wgmma's boxes have no more rows of A than there are, by eights") {
  const auto rows = [](std::int64_t m, const std::string& more) {
    const Config config = config_of("wgmma:block_m=128,block_n=128,block_k=64" + more);
    return plan_of(config, product(m, 2048)).maps[0].box_outer;
  };
  CHECK(rows(1, "") == 8);
  CHECK(rows(100, "") == 104);
  CHECK(rows(121, "") == 128);
  CHECK(rows(1000, "") == 128);
  CHECK(rows(20, ",cluster_m=2") == 24);
  CHECK(rows(20, ",cluster_n=2") == 64);  // halves of a tile's rows
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

Resources needs_of(const std::string& config, const Problem& problem) {
  DeviceSpec device;
  device.sm_count = 132;
  return config_of(config).kernel->resources(config_of(config), problem, device, 0);
}

std::string broken_by(const std::string& text) {
  const Config config = config_of(text);
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, KernelTraits{})) return std::string(constraint.name);
  }
  return "";
}

template <typename Args>
SplitArgs split_args_of(const std::string& config, const Problem& problem) {
  const LaunchPlan plan = plan_of(config_of(config), problem);
  Args args;
  REQUIRE(plan.params_size == sizeof(args));
  std::memcpy(&args, plan.params.data(), sizeof(args));
  return args.split;
}

Problem deep(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem = product(m, n);
  problem.k = problem.lda = problem.ldb = k;
  return problem;
}

TEST_CASE("wgmma's parts of k are one cluster up to 8, and clusters that share a workspace above") {
  const Problem problem = deep(256, 256, 65536);
  const std::string tile = "wgmma:block_m=128,block_n=128,block_k=64,split_k=";
  for (const int parts : {2, 3, 4, 5, 6, 7, 8}) {
    const Resources r = needs_of(tile + std::to_string(parts), problem);
    CHECK(r.cluster == parts);
    CHECK(r.grid == 4 * parts);
    CHECK(r.workspace_bytes == 0);
  }
  const auto several = [&](int parts, int cluster) {
    const Resources r = needs_of(tile + std::to_string(parts), problem);
    CAPTURE(parts);
    CHECK(r.cluster == cluster);
    CHECK(r.grid == 4 * parts);
    CHECK(r.workspace_bytes == 65536 + 4 * (parts / cluster) * 128 * 128 * 4);
  };
  several(9, 1);
  several(12, 4);
  several(16, 8);
  several(32, 8);
  several(64, 8);
  // More blocks than SMs start as there is room.
  CHECK(needs_of(tile + "8", deep(4096, 4096, 4096)).grid == 8192);
}

void check_parts(const std::string& text, const Problem& problem, int split,
                 const SplitArgs& args) {
  const Config config = config_of(text);
  const Work work = config.kernel->work(config, problem, {});
  const std::int64_t parts = work.split_k;
  CHECK(parts == work.cluster_k * args.groups);
  CHECK(parts <= split);
  CHECK(needs_of(text, problem).grid == parts);
  CHECK(args.part_steps * parts + args.longer_parts == work.k_tiles);
  CHECK(args.longer_parts < parts);
  CHECK((args.part_steps > 0 || args.groups == 1));
  CHECK((needs_of(text, problem).workspace_bytes > 0) == (args.groups > 1));
}

TEST_CASE("every k tile belongs to one part, and none is left without unless k is too short") {
  for (const std::int64_t k : {1, 64, 520, 576, 1000, 4096, 65536}) {
    for (const int split : {2, 3, 7, 8, 9, 12, 16, 64}) {
      CAPTURE(k, split);
      const std::string text =
          fmt::format("wgmma:block_m=64,block_n=64,block_k=64,split_k={}", split);
      const Problem problem = deep(64, 64, k);
      check_parts(text, problem, split, split_args_of<WgmmaArgs>(text, problem));
    }
  }
}

TEST_CASE("more slices than the workspace has marks for go without it") {
  const std::string text = "wgmma:block_m=64,block_n=64,block_k=64,split_k=16";
  // 8 slices of 32 x 64 tiles have the last mark.
  CHECK(needs_of(text, deep(64 * 32, 64 * 64, 4096)).workspace_bytes ==
        65536 + 2048 * 2 * 64 * 64 * 4);
  const Resources r = needs_of(text, deep(64 * 32, 64 * 64 + 1, 4096));
  CHECK(r.workspace_bytes == 0);
  CHECK(r.grid == 32 * 65 * 8);
  CHECK(split_args_of<WgmmaArgs>(text, deep(64 * 32, 64 * 64 + 1, 4096)).groups == 1);
  // And no sum overflows.
  CHECK(needs_of("wgmma:block_m=1,block_n=1,split_k=8", deep(kMost, kMost, 64)).grid ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("what splits k shares no loads, takes no turns, and stores whole pieces of 8 columns") {
  const std::string tile = "wgmma:block_m=128,block_n=96,block_k=64,consumers=2,";
  CHECK(broken_by(tile + "split_k=4").empty());
  CHECK(broken_by(tile + "split_k=36").empty());
  CHECK(broken_by(tile + "split_k=9").empty());
  CHECK(broken_by(tile + "split_k=8") == "split_columns");
  CHECK(broken_by(tile + "split_k=16") == "split_columns");
  CHECK(broken_by(tile + "split_k=2,cluster_m=2") == "split_alone");
  CHECK(broken_by(tile + "split_k=2,cluster_n=2") == "split_alone");
  CHECK(broken_by(tile + "split_k=2,pingpong=1") == "split_alone");
}

TEST_CASE("the sums lie where the ring was, and take more room where it is smaller") {
  const auto smem = [](const std::string& rest) {
    return needs_of("wgmma:block_m=128,block_n=256,block_k=64,consumers=2," + rest,
                    deep(128, 256, 4096))
        .smem_bytes;
  };
  const std::int64_t ring = 2 * (128 + 256) * 128;
  const std::int64_t rest = 8 * 2 * 16 * 128 + 8 * 6;  // store buffers and barriers
  CHECK(smem("stages=2,split_k=1") == ring + rest);
  CHECK(smem("stages=2,split_k=2") == 128 * 256 * 4 + rest);
  CHECK(smem("stages=2,split_k=9") == ring + rest);  // every part by itself
  CHECK(smem("stages=4,split_k=2") == 2 * ring + rest + 8 * 4);
  const Config config = config_of("wgmma:block_m=128,block_n=256,block_k=64,stages=2,split_k=2");
  const std::vector<Term> terms = config.kernel->smem_terms(config, KernelTraits{});
  std::int64_t sum = 0;
  for (const Term& term : terms) {
    if (term.label != "total") sum += term.value;
  }
  CHECK(sum == terms.back().value);
  CHECK(sum == smem("stages=2,split_k=2"));
  // A slice of 32 columns is stored in rows of 64 bytes.
  const Config narrow = config_of("wgmma:block_m=128,block_n=256,block_k=64,split_k=8");
  CHECK(plan_of(narrow, deep(128, 256, 4096)).maps[2].box_inner == 32);
  CHECK(plan_of(narrow, deep(128, 256, 4096)).maps[2].swizzle_bytes == 64);
}

TEST_CASE("mma's parts of k are blocks of their own that share a workspace") {
  const std::string tile = "mma:block_m=32,block_n=64,block_k=32,split_k=";
  const Problem problem = deep(100, 512, 1524);
  const Resources whole = needs_of(tile + "1", problem);
  CHECK(whole.grid == 4 * 8);
  CHECK(whole.workspace_bytes == 0);
  CHECK(plan_of(config_of(tile + "1"), problem).params_size == sizeof(GemmArgs));
  for (const int parts : {2, 3, 8, 16}) {
    CAPTURE(parts);
    const std::string text = tile + std::to_string(parts);
    const Resources r = needs_of(text, problem);
    CHECK(r.cluster == 1);
    CHECK(r.grid == 4 * 8 * parts);
    CHECK(r.workspace_bytes == 65536 + 4 * 8 * parts * 32 * 64 * 4);
    CHECK(r.smem_bytes == whole.smem_bytes);
    const Config config = config_of(text);
    const LaunchPlan plan = config.kernel->launch_plan(config, problem, {}, {0, 0, 0, 4096}, 0);
    CHECK(plan.grid[0] == r.grid);
    SplitMmaArgs args;
    REQUIRE(plan.params_size == sizeof(args));
    std::memcpy(&args, plan.params.data(), sizeof(args));
    CHECK(args.k == 1524);
    CHECK(args.split.workspace == reinterpret_cast<void*>(4096));
    const Work work = config.kernel->work(config, problem, {});
    CHECK(work.split_k == parts);
    CHECK(work.cluster_k == 1);
  }
  for (const std::int64_t k : {1, 32, 65, 100, 1000, 65536}) {
    for (const int split : {2, 3, 8, 16}) {
      CAPTURE(k, split);
      const std::string text = tile + std::to_string(split);
      check_parts(text, deep(32, 64, k), split, split_args_of<SplitMmaArgs>(text, deep(32, 64, k)));
    }
  }
  const Config config = config_of(tile + "4");
  CHECK(config.kernel->resources(config, problem, {}, 7).grid == 7);
}

TEST_CASE("mma splits no k of more tiles than the workspace has marks for") {
  const std::string text = "mma:block_m=64,block_n=64,block_k=64,split_k=4";
  CHECK(needs_of(text, deep(64 * 128, 64 * 128, 4096)).workspace_bytes ==
        65536 + std::int64_t{16384} * 4 * 64 * 64 * 4);
  const Problem more = deep(64 * 128, 64 * 128 + 1, 4096);
  CHECK(needs_of(text, more).workspace_bytes == 0);
  CHECK(needs_of(text, more).grid == 128 * 129);
  CHECK(split_args_of<SplitMmaArgs>(text, more).groups == 1);
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

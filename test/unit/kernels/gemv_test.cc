// What gemv says of itself: whom it serves, what it takes, what it launches.
#include <string>
#include <string_view>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/support/problems.h"

namespace autotune {
namespace {

DeviceSpec hopper() {
  DeviceSpec device;
  device.sm_count = 132;
  device.limits.arch = "sm_90a";
  device.limits.mma_dtypes = {"f16", "bf16", "tf32"};
  return device;
}

Config config_of(const std::string& parameters) {
  const auto config = parse_config("gemv:" + parameters, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

// The name of the first structural constraint that does not hold; empty where all do.
std::string_view broken(const std::string& parameters, DType dtype, Layout layout = Layout::tn) {
  const Config config = config_of(parameters);
  const KernelTraits traits = traits_of(test::gemm(1, 4096, 4096, dtype, layout));
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, traits)) return constraint.name;
  }
  return {};
}

TEST_CASE("gemv serves what lies along k, on tensor cores or by FFMA") {
  const HostTwin& gemv = *find_kernel(*find_family("gemm"), "gemv");
  const auto refusal = [&](DType dtype, Layout layout, const DeviceSpec& device) {
    return gemv.unsupported(traits_of(test::gemm(2, 64, 64, dtype, layout)), device);
  };
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    CHECK(refusal(dtype, Layout::tn, hopper()).empty());
    CHECK(refusal(dtype, Layout::tt, hopper()).empty());
    CHECK_FALSE(refusal(dtype, Layout::nn, hopper()).empty());
    CHECK_FALSE(refusal(dtype, Layout::nt, hopper()).empty());
  }
  // A single row lies along k, whatever its layout is called.
  CHECK(gemv.unsupported(traits_of(test::gemm(1, 64, 64, DType::bf16, Layout::nt)), hopper())
            .empty());
  CHECK(refusal(DType::fp32, Layout::tn, {}).empty());
  CHECK(gemv.most_rows(traits_of(test::gemm(2, 64, 64))) == 128);
  CHECK(gemv.most_rows(traits_of(test::gemm(2, 64, 64, DType::fp32))) == 16);
  CHECK_FALSE(refusal(DType::bf16, Layout::tn, {}).empty());
}

TEST_CASE("gemv's structure: rows of the instruction, whole warps, whole steps, registers") {
  CHECK(broken("block_m=8", DType::bf16).empty());
  CHECK(broken("block_m=4", DType::bf16) == "rows");
  CHECK(broken("block_m=4", DType::fp32).empty());
  CHECK(broken("block_m=12", DType::fp32) == "rows");
  CHECK(broken("block_m=4,lanes_k=32,block_k=2048", DType::bf16).empty());
  CHECK(broken("block_m=4,lanes_k=24", DType::bf16) == "lanes");
  CHECK(broken("block_m=4,lanes_k=2,block_k=2048", DType::bf16) == "lanes");
  CHECK(broken("block_m=4,lanes_k=8,block_k=2048", DType::bf16, Layout::tt) == "lanes");
  CHECK(broken("block_m=1,block_n=4,lanes_k=8,block_k=1024", DType::bf16).empty());
  CHECK(broken("block_m=1,block_n=6,lanes_k=8,block_k=1024", DType::bf16) == "warp_columns");
  CHECK(broken("block_n=24,warps_n=2", DType::bf16) == "warp_columns");
  CHECK(broken("block_n=24,warps_n=3", DType::bf16).empty());
  CHECK(broken("block_k=128,warps_k=8", DType::bf16) == "k_steps");
  CHECK(broken("block_k=128,warps_k=8", DType::fp32).empty());
  CHECK(broken("block_m=1,lanes_k=32,block_k=1024", DType::bf16) == "k_steps");
  CHECK(broken("block_m=1,lanes_k=32,block_k=1024", DType::fp32).empty());
  // 4 passes of 2 steps, 4 registers for A and 4 for each of 6 tiles; 24 sums.
  CHECK(broken("block_n=48", DType::bf16) == "in_flight");
  CHECK(broken("block_n=40", DType::bf16).empty());
  // Rows of B: a thread reads 4, 8 or 16 bytes of each, and 2 too by FFMA.
  CHECK(broken("block_n=8", DType::bf16, Layout::tt) == "row_pieces");
  CHECK(broken("block_n=8", DType::tf32, Layout::tt).empty());
  CHECK(broken("block_n=24,block_k=256", DType::bf16, Layout::tt) == "row_pieces");
  CHECK(broken("block_n=64,block_k=256,stages=2", DType::bf16, Layout::tt).empty());
  CHECK(broken("block_m=1,block_n=32,block_k=128,lanes_k=1", DType::bf16, Layout::tt).empty());
  CHECK(broken("block_m=1,block_n=96,block_k=64,lanes_k=1", DType::bf16, Layout::tt) ==
        "row_pieces");
  CHECK(broken("block_m=1,block_n=256,block_k=64,stages=1,lanes_k=1", DType::bf16, Layout::tt)
            .empty());
  CHECK(broken("block_m=1,block_n=512,block_k=64,stages=1,lanes_k=1", DType::bf16, Layout::tt) ==
        "row_pieces");
}

TEST_CASE("gemv's resources and launch") {
  const Problem problem = test::gemm(5, 1000, 4096);
  const Config config = config_of("block_m=8,block_n=32,block_k=512,warps_n=2,warps_k=4");
  const Resources need = config.kernel->resources(config, problem, hopper(), 0);
  CHECK(need.most_rows == 8);
  CHECK(need.threads == 256);
  CHECK(need.smem_bytes == 4 * 8 * (32 + 8) * 4);
  CHECK(need.grid == 32);
  CHECK(config.kernel->resources(config, problem, hopper(), 7).grid == 7);
  const LaunchPlan plan = config.kernel->launch_plan(config, problem, hopper(), {}, 0);
  CHECK(plan.grid[0] == 32);
  CHECK(plan.block[0] == 256);
  CHECK(plan.smem_bytes == need.smem_bytes);
  // Rows of an odd number of eight words need no padding.
  const Config odd = config_of("block_n=24,warps_n=3,warps_k=2");
  CHECK(odd.kernel->resources(odd, problem, hopper(), 0).smem_bytes == 2 * 8 * 24 * 4);
}

TEST_CASE("gemv's blocks take 16 rows each on tensor cores; by FFMA there are no more") {
  const Problem problem = test::gemm(40, 100, 4096);
  const Config tiles = config_of("block_m=16,block_n=16,block_k=512,stages=1");
  const Resources need = tiles.kernel->resources(tiles, problem, hopper(), 0);
  CHECK(need.most_rows == 128);
  CHECK(need.grid == 3 * 7);
  CHECK(tiles.kernel->work(tiles, problem, hopper()).tiles_m == 3);
  const Problem fp32 = test::gemm(40, 100, 4096, DType::fp32);
  CHECK(tiles.kernel->resources(tiles, fp32, hopper(), 0).most_rows == 16);
  const Config lanes = config_of("block_m=16,block_n=4,block_k=1024,stages=1,warps_k=4,lanes_k=32");
  CHECK(lanes.kernel->resources(lanes, problem, hopper(), 0).most_rows == 16);
}

TEST_CASE("the registers of gemv: halves of words that are put together take nearly three") {
  const Config config = config_of("block_m=16,block_n=16,block_k=256,stages=1,warps_k=8");
  const auto demand = [&](std::int64_t k) {
    const Problem problem = test::gemm(40, 100, k);
    return config.kernel->resources(config, problem, hopper(), 0).register_demand;
  };
  // Chunks of two tiles of columns and twice 8 rows; sums, and what is live beside them.
  CHECK(demand(4096) == 4 * 4 + 8 + 20);
  CHECK(demand(4098) == 4 * 4 + 8 + 20);
  CHECK(demand(4097) == 4 * 22 + 8 + 20);
  // By FFMA each is a word: one column in tiles of 32.
  const Config rows = config_of("block_m=1,block_n=32,block_k=64,stages=2,warps_k=4,lanes_k=1");
  const auto live = [&](std::int64_t n) {
    const Problem problem = test::gemm(1, n, 4096, DType::bf16, Layout::tt);
    return rows.kernel->resources(rows, problem, hopper(), 0).register_demand;
  };
  CHECK(live(4096) == live(4097));
}

TEST_CASE("the work of gemv: all 16 rows of the instruction, A once for each warp along n") {
  const Problem problem = test::gemm(1, 4096, 4096);
  const Config config = config_of("block_m=8,block_n=16,block_k=512,warps_n=2,warps_k=4");
  const Work work = config.kernel->work(config, problem, hopper());
  CHECK(work.tiles_m == 1);
  CHECK(work.tiles_n == 256);
  CHECK(work.k_tiles == 8);
  CHECK(work.flops_per_k_tile == 2.0 * 16 * 16 * 512);
  CHECK(work.smem_bytes_per_k_tile == (16 + 8 * 2) * 512 * 2.0);
  // 16 columns x 512 x 2 bytes in pieces of 16, and 8 rows twice, over 256 threads.
  CHECK(work.load_instructions_per_k_tile == 16 * 64 / 256.0 + 2 * 8 * 64 / 256.0);

  // Whole warps along k: each reads two rows of A and two columns, and converts weights once, A for
  // each column.
  const Config wide = config_of("block_m=2,block_n=4,block_k=1024,warps_n=2,warps_k=4,lanes_k=32");
  const Work rows = wide.kernel->work(wide, problem, hopper());
  CHECK((rows.unit == Work::Unit::ffma && rows.tiles_n == 1024 && rows.k_tiles == 4));
  CHECK(rows.flops_per_k_tile == 2.0 * 2 * 4 * 1024 * (1 + 1 / 2.0 + 1 / 2.0));
  CHECK(rows.load_instructions_per_k_tile == (4 * 128 + 2 * 2 * 128) / 256.0);
}

}  // namespace
}  // namespace autotune

// wgmma_swap's host twin: which operand is which, what it serves, how C lies in its stores.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/gemm/wgmma_args.h"
#include "test/support/catch.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

TEST_CASE("wgmma_swap multiplies the transposes, and C is stored as it lies") {
  Problem problem = product(20, 2000);
  problem.k = 512;
  problem.lda = 520;
  problem.ldb = 528;
  problem.ldc = 2008;
  const Config config =
      config_of("wgmma_swap:block_m=128,block_n=24,block_k=64,stages=4,consumers=2");
  const LaunchPlan plan = plan_of(config, problem);
  REQUIRE(plan.map_count == 4);  // one of them for the last 80 columns of C
  const LaunchPlan same = plan_of(config_of("wgmma:block_m=64,block_n=64,block_k=64"), problem);
  const TensorMap& weights = plan.maps[0];
  CHECK(weights.address == same.maps[1].address);
  CHECK((weights.inner == 512 && weights.outer == 2000 && weights.pitch_bytes == 1056));
  const TensorMap& rows = plan.maps[1];
  CHECK(rows.address == same.maps[0].address);
  CHECK((rows.inner == 512 && rows.outer == 20 && rows.pitch_bytes == 1040));
  CHECK(rows.box_outer == 24);
  const TensorMap& c = plan.maps[2];
  CHECK(c.address == same.maps[2].address);
  CHECK((c.inner == 2000 && c.outer == 20 && c.pitch_bytes == 4016));
  CHECK((c.box_inner == 64 && c.box_outer == 24 && c.swizzle_bytes == 128));
  CHECK(plan.grid[0] == 16);  // tiles of 128 columns of C

  DeviceSpec device;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  const auto refusal = [&](const Problem& each) {
    return config.kernel->unsupported(traits_of(each), device);
  };
  CHECK(refusal(problem).empty());
  Problem other = problem;
  other.out_dtype = DType::fp32;
  CHECK(refusal(other).find("16-bit") != std::string::npos);
}

TEST_CASE("wgmma_swap exchanges operands in every layout") {
  Problem problem = product(200, 2000);
  problem.k = 512;
  problem.ldc = 2008;
  // 192 columns of C, which are rows of the tile, by 72 of its rows.
  const Config config =
      config_of("wgmma_swap:block_m=192,block_n=72,block_k=128,stages=2,consumers=3");
  const auto defined = [&](const Problem& each, std::string_view name) {
    for (const auto& [key, value] :
         config.kernel->definitions(config, traits_of(each), DeviceSpec{})) {
      if (key == name) return value;
    }
    return std::string();
  };
  for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
    INFO(to_string(layout));
    const bool a_k = a_is_k_major(layout);
    const bool b_k = b_is_k_major(layout);
    problem.layout = layout;
    problem.lda = a_k ? 520 : 208;
    problem.ldb = b_k ? 528 : 2016;
    const LaunchPlan plan = plan_of(config, problem);
    const TensorMap& weights = plan.maps[0];
    CHECK(weights.inner == (b_k ? 512 : 2000));
    CHECK(weights.outer == (b_k ? 2000 : 512));
    CHECK(weights.pitch_bytes == problem.ldb * 2);
    CHECK(weights.box_outer == (b_k ? 192 : 128));
    const TensorMap& rows = plan.maps[1];
    CHECK(rows.inner == (a_k ? 512 : 200));
    CHECK(rows.outer == (a_k ? 200 : 512));
    CHECK(rows.pitch_bytes == problem.lda * 2);
    CHECK(rows.box_outer == (a_k ? 72 : 128));
    // Maps for the last rows of either side, where these lie along k, beside C's two.
    CHECK(plan.map_count == 4u + (a_k ? 1 : 0) + (b_k ? 1 : 0));
    CHECK(defined(problem, "A_K_MAJOR") == (b_k ? "1" : "0"));
    CHECK(defined(problem, "B_K_MAJOR") == (a_k ? "1" : "0"));
    // 72 rows of A contiguous along m take two slabs of 64.
    const std::int64_t a_bytes = std::int64_t{a_k ? 72 : 128} * 128 * 2;
    const std::vector<Term> terms = config.kernel->smem_terms(config, traits_of(problem));
    CHECK(terms.front().value == 2 * (192 * 128 * 2 + a_bytes));
    CHECK(terms.back().value == plan.smem_bytes);
  }
}

TEST_CASE("wgmma_swap serves few rows, and more where it cuts C into fewer tiles") {
  const auto most = [](std::int64_t m, int block_n) {
    const Config config = config_of("wgmma_swap:block_m=128,block_n=" + std::to_string(block_n));
    return config.kernel->resources(config, product(m, 2048), {}, 0).most_rows;
  };
  CHECK(most(600, 200) == 0);     // 3 x 16 tiles, 5 x 11 of wgmma's
  CHECK(most(11008, 168) == 0);   // 66 x 16, 86 x 13
  CHECK(most(600, 192) == 256);   // 4 x 16, 5 x 11
  CHECK(most(1024, 200) == 256);  // 6 x 16, 8 x 11
  CHECK(most(2048, 168) == 256);  // 13 x 16 either way
}

TEST_CASE("wgmma_swap stores whole lines of C, for which a consumer's warps meet") {
  const Problem few = product(100, 8192);
  for (const int consumers : {1, 2, 3}) {
    const Config config = config_of("wgmma_swap:block_m=" + std::to_string(64 * consumers) +
                                    ",block_n=104,consumers=" + std::to_string(consumers));
    const LaunchPlan plan = plan_of(config, few);
    for (const std::size_t i : {2, 3}) {
      const TensorMap& map_c = plan.maps[i];
      CHECK(map_c.box_inner == 64);
      CHECK(map_c.box_outer == (i == 2 ? 64 : 40));  // 104 rows in two stores
      CHECK(map_c.swizzle_bytes == 128);
    }
    CHECK(config.kernel->resources(config, few, DeviceSpec{}, 0).barriers == 1 + consumers);
  }
}

}  // namespace
}  // namespace autotune

// Every way for warps and blocks to work together, one small launch each: what racecheck, which
// slows a kernel down by orders of magnitude, is run on (`gpu_tests "[race]"`).
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/problem.h"
#include "search/plan.h"
#include "test/gpu/given_gemm.h"

using namespace autotune;

namespace {

struct Launch {
  DType dtype;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::string config;
  int max_sms = 0;  // fewer than there are tiles: blocks take several
};

// Whole numbers so small that every sum of products is exact in fp32, in any order.
std::vector<float> whole_numbers(std::int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random() % 17) - 8;
  return values;
}

std::vector<float> product(const Problem& p, const test::GivenMatrices& given) {
  std::vector<float> values(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t i = 0; i < p.k; ++i) {
      const float a = given.a[static_cast<std::size_t>(row * p.k + i)];
      for (std::int64_t column = 0; column < p.n; ++column) {
        values[static_cast<std::size_t>(row * p.n + column)] +=
            a * given.b[static_cast<std::size_t>(i * p.n + column)];
      }
    }
  }
  return values;
}

const std::string kOneWgmma = "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,";
const std::string kTwoWgmma = "wgmma:block_m=128,block_n=64,block_k=32,stages=3,consumers=2,";
const std::string kWhole = "pingpong=0,cluster_m=1,cluster_n=1,split_k=1";

const std::vector<Launch>& launches() {
  using enum DType;
  static const std::vector<Launch> all = {
      {tf32, 100, 68, 160, kOneWgmma + kWhole},
      {tf32, 200, 68, 160, "wgmma:block_m=64,block_n=64,block_k=32,stages=14,consumers=1," + kWhole,
       1},
      {tf32, 300, 68, 160, kTwoWgmma + kWhole, 1},
      {tf32, 300, 68, 160,
       "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=2,pingpong=1,cluster_m=1,"
       "cluster_n=1,split_k=1",
       1},
      {tf32, 300, 136, 160, kTwoWgmma + "pingpong=0,cluster_m=2,cluster_n=1,split_k=1", 2},
      {tf32, 200, 200, 160, kOneWgmma + "pingpong=0,cluster_m=1,cluster_n=2,split_k=1", 2},
      {tf32, 100, 68, 320, kOneWgmma + "pingpong=0,cluster_m=1,cluster_n=1,split_k=4"},
      {tf32, 200, 136, 320, kTwoWgmma + "pingpong=0,cluster_m=1,cluster_n=2,split_k=3"},
      {tf32, 100, 200, 160, kOneWgmma + kWhole + ",stagger=1", 2},
      {tf32, 200, 168, 320,
       "wgmma:block_m=64,block_n=80,block_k=32,stages=12,consumers=1,pingpong=0,cluster_m=1,"
       "cluster_n=1,split_k=2",
       2},
      {tf32, 100, 200, 320, kOneWgmma + "pingpong=0,cluster_m=1,cluster_n=1,split_k=2,stagger=2"},
      {fp32, 100, 68, 160,
       "wgmma_fp32:block_m=64,block_n=64,block_k=32,stages=3,cut_stages=3,chains=1,cutters=3"},
      {tf32, 100, 68, 160,
       "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=1"},
      {tf32, 100, 69, 161,
       "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=3"},
      {fp32, 100, 68, 160,
       "mma:block_m=32,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=1"},
      {fp32, 100, 68, 160,
       "simt:block_m=64,block_n=64,block_k=16,stages=3,thread_m=4,thread_n=4,min_blocks=1"},
      {tf32, 7, 68, 320,
       "gemv:block_m=8,block_n=16,block_k=64,stages=2,warps_n=1,warps_k=4,min_blocks=1"},
  };
  return all;
}

}  // namespace

TEST_CASE("small launches of every kind give exact sums", "[race]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  std::mt19937_64 random(7);
  int launched = 0;
  for (const Launch& each : launches()) {
    const Problem problem = test::gemm(each.m, each.n, each.k, each.dtype, Layout::tn);
    const auto config = parse_config(each.config + ",raster=0,swizzle=1", *find_family("gemm"));
    REQUIRE(config);
    if (!config->kernel->unsupported(traits_of(problem), bench->gpu().spec).empty()) continue;
    const auto verdict =
        search::check(*config, problem, traits_of(problem), bench->gpu().spec, {}, nullptr);
    if (verdict) FAIL(search::describe(*verdict, *config, bench->gpu().spec));
    test::GivenMatrices given;
    given.a = whole_numbers(each.m * each.k, random);
    given.b = whole_numbers(each.k * each.n, random);
    INFO(each.config);
    CHECK(test::run_given(*bench, *config, problem, given, each.max_sms) ==
          product(problem, given));
    ++launched;
  }
  CHECK(launched > 0);
}

// A spread of configs, not only the default, on small problems that no tile divides: what
// memcheck and synccheck are run on (`gpu_tests "[spread]"`).
#include <utility>
#include <vector>

#include "test/gpu/check_sample.h"
#include "test/support/edges.h"
#include "test/support/ragged.h"
#include "test/support/swapped.h"

using namespace autotune;

namespace {

// nullptr, after a word of why, where there is none.
gpu::Measurer* measurer_with_wgmma() {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr || measurer->gpu().spec.limits.has(Feature::wgmma)) return measurer;
  WARN("skipped: this GPU has no warpgroup matrix instruction");
  return nullptr;
}

void check_all(const std::vector<std::pair<Problem, Config>>& products) {
  gpu::Measurer* measurer = measurer_with_wgmma();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  for (const auto& [problem, config] : products) batch.add(problem, config);
  batch.check();
}

}  // namespace

TEST_CASE("sampled configs are right in every type and layout", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  std::uint64_t seed = 1;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : test::kAllLayouts) {
      // Rows of whole 16-byte pieces, and rows of single elements.
      batch.sample(test::gemm(200, 312, 136, dtype, layout), 2, seed++);
      batch.sample(test::gemm(129, 77, 65, dtype, layout), 2, seed++);
    }
  }
  batch.check();
}

TEST_CASE("stores of C that lie over each other leave every column right", "[spread]") {
  gpu::Measurer* measurer = measurer_with_wgmma();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  for (const int block_n : {104, 232, 248}) {
    for (const int n : {480, 484, 483}) {  // rows end on 16 bytes, within them, and by element
      Problem problem = test::gemm(200, n, 136, DType::bf16, Layout::tn);
      if (n % 2 == 0) problem.ldc = 488;
      const auto config = parse_config(
          "wgmma:block_m=128,stages=3,block_n=" + std::to_string(block_n), *find_family("gemm"));
      REQUIRE(config);
      batch.add(problem, *config);
    }
  }
  batch.check();
}

// Each takes more shared memory than there is unless C leaves through the ring.
TEST_CASE("C leaves through a stage of the ring while the next tile's stages fill", "[spread]") {
  gpu::Measurer* measurer = measurer_with_wgmma();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  const auto config_of = [](const std::string& text, const char* family = "gemm") {
    const auto config = parse_config("wgmma:pingpong=0," + text, *find_family(family));
    REQUIRE(config);
    return *config;
  };
  const std::string one = "block_m=64,consumers=1,";
  const std::string deep = one + "block_n=64,block_k=128,stages=7,";
  const std::string alone = "cluster_m=1,cluster_n=1,split_k=1";
  const auto check_rows = [&](std::int64_t m, const Config& config) {
    for (const int n : {1000, 1004, 1003}) {  // rows of C that end on 16 bytes, within, anywhere
      Problem problem = test::gemm(m, n, 1032, DType::bf16, Layout::tn);
      if (n % 2 == 0) problem.ldc = 1008;
      batch.add(problem, config);
    }
    batch.add(test::gemm(m, 1000, 72, DType::bf16, Layout::tn), config);  // less than the ring
    Problem with_beta = test::gemm(m, 1000, 520, DType::bf16, Layout::tn);
    with_beta.beta = 0.5;
    batch.add(with_beta, config);
  };
  for (const std::string& blocks : {alone, std::string("cluster_m=2,cluster_n=1,split_k=1"),
                                    std::string("cluster_m=1,cluster_n=2,split_k=1")}) {
    check_rows(1000, config_of(deep + blocks));  // two tiles per SM
    for (const Layout layout : test::kAllLayouts) {
      batch.add(test::gemm(1000, 1000, 1032, DType::bf16, layout), config_of(deep + blocks));
    }
  }
  check_rows(1000,
             config_of(one + "block_n=80,block_k=64,stages=12,cluster_m=1,cluster_n=1,split_k=2"));
  check_rows(100, config_of(deep + "cluster_m=2,cluster_n=1,split_k=3"));

  const std::string two = "block_m=128,consumers=2,block_k=64,";
  check_rows(4000, config_of(two + "block_n=128,stages=7," + alone));  // several tiles per SM
  check_rows(2000, config_of(two + "block_n=64,stages=9," + alone));
  check_rows(2000, config_of(two + "block_n=64,stages=9,cluster_m=2,cluster_n=1,split_k=1"));
  check_rows(3000, config_of("block_m=192,consumers=3,block_k=64,block_n=64,stages=7," + alone));
  check_rows(200, config_of(two + "block_n=64,stages=9,cluster_m=2,cluster_n=1,split_k=3"));

  Problem to_fp32 = test::gemm(1000, 1000, 520, DType::bf16, Layout::tn);
  to_fp32.out_dtype = DType::fp32;
  batch.add(to_fp32, config_of(deep + alone));
  batch.add(test::gemm(1000, 1000, 520, DType::tf32, Layout::tn),
            config_of(one + "block_n=64,block_k=64,stages=7," + alone));
  batch.add(test::geglu(1000, 1000, 520, DType::bf16, Layout::tn, Activation::gelu_tanh),
            config_of(one + "block_n=56,block_k=64,stages=10," + alone, "geglu"));
  batch.check();
}

TEST_CASE("C leaves by half rows where whole ones leave no room", "[spread]") {
  gpu::Measurer* measurer = measurer_with_wgmma();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  for (const char* text :
       {"wgmma:block_m=192,block_n=176,block_k=64,stages=4,consumers=3",
        "wgmma:block_m=128,block_n=192,block_k=64,stages=5,consumers=2,pingpong=1",
        "wgmma:block_m=256,block_n=160,block_k=64,stages=4,consumers=2,cluster_m=2"}) {
    const auto config = parse_config(text, *find_family("gemm"));
    REQUIRE(config);
    for (const int n : {2000, 2004, 2003}) {  // rows of C that end on 16 bytes, within, anywhere
      batch.add(test::gemm(2100, n, 1032, DType::bf16, Layout::tn), *config);
    }
    Problem with_beta = test::gemm(1000, 2000, 520, DType::bf16, Layout::tn);
    with_beta.beta = 0.5;
    batch.add(with_beta, *config);
  }
  batch.check();
}

TEST_CASE("products of C's transpose are right wherever its rows end", "[spread]") {
  check_all(test::swapped_products());
}

TEST_CASE("rows that begin anywhere are right, copied one by one or as runs", "[spread]") {
  check_all(test::ragged_products());
}

TEST_CASE("operands that are packed first are right in every layout", "[spread]") {
  check_all(test::packed_products());
}

TEST_CASE("last tiles that are not whole are right in every layout, gated and not", "[spread]") {
  check_all(test::edge_products());
}

TEST_CASE("tiles that begin at different k tiles have all of them", "[spread]") {
  gpu::Measurer* measurer = measurer_with_wgmma();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  for (const Layout layout : test::kAllLayouts) {
    for (const std::string blocks : {"consumers=1,pingpong=0,cluster_m=1,cluster_n=1,split_k=1",
                                     "consumers=2,pingpong=1,cluster_m=1,cluster_n=1,split_k=1",
                                     "consumers=1,pingpong=0,cluster_m=1,cluster_n=2,split_k=1",
                                     "consumers=1,pingpong=0,cluster_m=1,cluster_n=1,split_k=2",
                                     "consumers=1,pingpong=0,cluster_m=2,cluster_n=1,split_k=3"}) {
      for (const int stagger : {1, 3, 8}) {
        const auto config = parse_config("wgmma:block_m=64,block_n=64,block_k=64,stages=3," +
                                             blocks + ",stagger=" + std::to_string(stagger),
                                         *find_family("gemm"));
        REQUIRE(config);
        for (const int m : {40, 128}) {  // one tile and two
          batch.add(test::gemm(m, 1000, 1032, DType::bf16, layout), *config);
        }
        batch.add(test::gemm(1000, 40, 1032, DType::bf16, layout), *config);
      }
    }
  }
  batch.check();
}

TEST_CASE("rows that begin anywhere are read and written to their last element", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  for (const Layout layout : test::kAllLayouts) {
    for (const int k : {1, 57, 58, 60, 63, 71, 111, 130}) {
      for (const int n : {44, 45, 46}) {
        for (const char* tile : {"mma:block_m=64,block_n=32,block_k=64,stages=2",
                                 "mma:block_m=32,block_n=128,block_k=32,stages=3"}) {
          const auto config =
              parse_config(tile + std::string(",warps_m=2,warps_n=2,split_k=1,raster=0,swizzle=1"),
                           *find_family("gemm"));
          REQUIRE(config);
          batch.add(test::gemm(67, n, k, DType::bf16, layout), *config);
        }
      }
    }
  }
  batch.check();
}

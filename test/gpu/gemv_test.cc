// gemv on every number of rows it serves, sizes that no tile and no load divides, every type,
// layout and alignment it takes.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "search/plan.h"
#include "test/gpu/check_sample.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

constexpr Layout kLayouts[] = {Layout::tn, Layout::tt};

Problem padded(Problem problem, std::int64_t lda, std::int64_t ldb, std::int64_t ldc) {
  problem.lda = lda;
  problem.ldb = ldb;
  problem.ldc = ldc;
  return checked(problem).value();
}

Config gemv_config(const std::string& parameters) {
  const auto config = parse_config("gemv:" + parameters, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

// A block of 16 columns whose two warps share k, and one of 64 columns with two warps along n and
// four along k; both in small passes, so that small problems have several.
Config small_blocks(DType dtype, int rows) {
  const std::string m = dtype == DType::fp32 ? (rows > 4 ? "16" : "4") : (rows > 8 ? "16" : "8");
  return gemv_config("block_m=" + m + ",block_n=16,block_k=64,stages=2,warps_n=1,warps_k=2");
}
Config large_blocks(DType) {
  return gemv_config("block_m=16,block_n=64,block_k=128,stages=3,warps_n=2,warps_k=4");
}

// Warps whose lanes all lie along one column, in passes of two steps of each.
Config whole_warps(DType dtype, int rows) {
  const std::string m = rows > 4 ? "16" : rows > 2 ? "4" : rows > 1 ? "2" : "1";
  const std::string k = storage_bytes(dtype) == 2 ? "1024" : "512";
  return gemv_config("block_m=" + m + ",block_n=6,block_k=" + k +
                     ",stages=1,warps_n=2,warps_k=2,lanes_k=32");
}
// And groups of 8, in two tiles of four columns.
Config groups_of_lanes(DType dtype) {
  const std::string k = storage_bytes(dtype) == 2 ? "192" : "96";
  return gemv_config("block_m=16,block_n=8,block_k=" + k +
                     ",stages=2,warps_n=1,warps_k=3,lanes_k=8");
}

// Lanes side by side along n, where B is contiguous so: an element or eight bytes of a row each;
// and two halves of a warp at two places along k.
Config along_n(DType dtype, int rows) {
  const std::string m = rows > 4 ? "16" : rows > 2 ? "4" : rows > 1 ? "2" : "1";
  const bool pieces = rows % 2 == 0;
  return gemv_config("block_m=" + m + ",block_n=" +
                     (!pieces                     ? "32"
                      : storage_bytes(dtype) == 2 ? "128"
                                                  : "64") +
                     ",block_k=64,stages=2,warps_n=1,warps_k=4,lanes_k=1");
}
Config along_n_in_halves(DType dtype) {
  return gemv_config(std::string("block_m=16,block_n=") +
                     (storage_bytes(dtype) == 2 ? "64" : "32") +
                     ",block_k=32,stages=1,warps_n=2,warps_k=2,lanes_k=2");
}

class Checker {
 public:
  explicit Checker(gpu::Measurer& measurer) : measurer_(measurer) {}

  void check(const Config& config, const Problem& problem, int max_sms = 0) {
    const DeviceSpec& device = measurer_.gpu().spec;
    search::Limits limits;
    limits.keep_slow = true;
    const auto verdict =
        search::check(config, problem, traits_of(problem), device, limits, nullptr);
    if (verdict) FAIL(search::describe(*verdict, config, device));
    test::check_config(measurer_, problem, config, max_sms);
  }

 private:
  gpu::Measurer& measurer_;
};

// All that FFMA multiplies but for four lanes along k, for as many rows.
void check_lanes(Checker& checker, DType dtype, int rows, const Problem& problem) {
  const bool k_major = b_is_k_major(traits_of(problem).layout);
  checker.check(k_major ? whole_warps(dtype, rows) : along_n(dtype, rows), problem);
  checker.check(k_major ? groups_of_lanes(dtype) : along_n_in_halves(dtype), problem);
}

}  // namespace

TEST_CASE("gemv is right for every number of rows it serves") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : kLayouts) {
      for (int m = 1; m <= 16; ++m) {
        const Problem problem = test::gemm(m, 200, 1000, dtype, layout);
        checker.check(small_blocks(dtype, m), problem);
        checker.check(large_blocks(dtype), problem);
        check_lanes(checker, dtype, m, problem);
      }
    }
  }
}

TEST_CASE("gemv is right where rows of C are several tiles", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32}) {
    for (const Layout layout : kLayouts) {
      for (const auto& [m, n, k] : {std::tuple{17, 100, 512}, {40, 77, 514}, {128, 33, 1001}}) {
        Problem problem = test::gemm(m, n, k, dtype, layout);
        checker.check(small_blocks(dtype, 16), problem);
        checker.check(large_blocks(dtype), problem, 5);
        problem.beta = -1.5;
        checker.check(small_blocks(dtype, 16), padded(problem, k + 3, problem.ldb + 5, n + 1));
      }
    }
  }
}

TEST_CASE("gemv is right where nothing divides n and k, with and without old C", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : kLayouts) {
      for (const auto& [n, k] : {std::pair{1, 1}, {7, 33}, {66, 7}, {77, 514}, {136, 516}}) {
        Problem problem = test::gemm(3, n, k, dtype, layout);
        checker.check(small_blocks(dtype, 3), problem);
        problem.m = 13;
        problem.alpha = 0.5;
        problem.beta = -1.5;
        checker.check(large_blocks(dtype), problem);
        check_lanes(checker, dtype, 13, problem);
      }
    }
  }
}

TEST_CASE("gemv reads nothing behind the last row of padded operands", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : kLayouts) {
      // Rows that begin on 16 bytes but end within a piece, at a step of k and within one.
      for (const int k : {512, 509}) {
        const std::int64_t ldb = layout == Layout::tn ? 528 : 112;
        checker.check(small_blocks(dtype, 4),
                      padded(test::gemm(4, 99, k, dtype, layout), 520, ldb, 101));
        checker.check(large_blocks(dtype),
                      padded(test::gemm(9, 99, k, dtype, layout), 516, ldb + 4, 104));
        checker.check(large_blocks(dtype),
                      padded(test::gemm(9, 99, k, dtype, layout), 514, ldb + 2, 104));
        for (const int more : {0, 1, 2, 4}) {
          check_lanes(checker, dtype, 4,
                      padded(test::gemm(4, 99, k, dtype, layout), 520 + more, ldb + more, 101));
        }
      }
    }
  }
}

TEST_CASE("gemv's blocks loop over the columns where there are fewer of them") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  const Problem problem = test::gemm(5, 1000, 512, DType::bf16, Layout::tn);
  for (const int sms : {1, 7, 40}) checker.check(small_blocks(DType::bf16, 5), problem, sms);
}

TEST_CASE("sampled configs of gemv are right") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  Checker checker(*measurer);
  std::uint64_t seed = 1;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : kLayouts) {
      const Problem problem = test::gemm(6, 1224, 1616, dtype, layout);
      search::Space space = *io::default_space("gemm");
      std::erase_if(space.kernels, [](const auto& kernel) { return kernel.kernel != "gemv"; });
      const auto plan = search::make_plan(problem, measurer->gpu().spec, space, {});
      if (!plan) FAIL(plan.error().message);
      const auto sample = search::sample_survivors(*plan, 12, seed++);
      std::vector<std::pair<Config, Problem>> wanted;
      for (const search::Candidate& each : sample) wanted.emplace_back(each.config, problem);
      test::compile_ahead(wanted, measurer->gpu().spec);
      for (const search::Candidate& each : sample) checker.check(each.config, problem);
    }
  }
}

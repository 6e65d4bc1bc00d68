// Gated products on the GPU: the reference against Eigen, every activation over its whole range,
// and sampled configs in every type, layout and activation.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "test/gpu/check_sample.h"
#include "test/gpu/elements.h"
#include "test/gpu/given_gemm.h"
#include "test/support/activations.h"

using namespace autotune;

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

bool is_served(const DeviceSpec& device, const Config& config, const Problem& problem) {
  return config.kernel->unsupported(traits_of(problem), device).empty();
}

// The first column of A meets the gates' weights only, the second one the others, so that C is the
// activation of the first. Empty where the GPU has no such kernel.
std::vector<float> activations_of(gpu::Workbench& bench, const char* text,
                                  const std::vector<float>& gates, Activation activation) {
  const auto m = static_cast<std::int64_t>(gates.size());
  Problem problem = test::geglu(m, 1, 2, DType::fp32, Layout::tn, activation);
  problem.lda = problem.ldb = 4;
  const auto config = parse_config(text, *find_family("geglu"));
  REQUIRE(config);
  if (!is_served(bench.gpu().spec, *config, problem)) return {};
  test::GivenMatrices given;
  for (const float gate : gates) given.a.insert(given.a.end(), {gate, 1.0F});
  given.b = {1.0F, 0.0F};
  given.up = {0.0F, 1.0F};
  return test::run_given(bench, *config, problem, given);
}

}  // namespace

TEST_CASE("the gated reference equals Eigen for every activation") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  constexpr std::int64_t kM = 65, kN = 77, kK = 47;
  const auto make = [&](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    auto memory = gpu::DeviceMemory::allocate(static_cast<std::size_t>(rows * columns * 4));
    REQUIRE(memory);
    const gpu::Matrix matrix{memory->address(), DType::fp32, rows, columns, columns, 1};
    REQUIRE(bench->fill_normal(matrix, 1.0, seed));
    return std::pair(std::move(*memory), matrix);
  };
  const auto on_host = [&](const std::pair<gpu::DeviceMemory, gpu::Matrix>& stored) -> RowMajor {
    const auto values = test::fetch(*bench, stored.second, stored.first.bytes());
    return Eigen::Map<const RowMajor>(values.data(), stored.second.rows, stored.second.columns);
  };
  const auto a = make(kM, kK, 1);
  const auto b = make(kK, kN, 2);
  const auto up = make(kK, kN, 3);
  const auto out = make(kM, kN, 4);
  for (const Activation activation : test::kAllActivations) {
    INFO(to_string(activation));
    REQUIRE(bench->reference(
        {a.second, b.second, {}, out.second, 1, 0, up.first.address(), activation}));
    const RowMajor gates = on_host(a) * on_host(b);
    const RowMajor expected =
        gates.unaryExpr([&](double x) { return test::exact_activation(x, activation); })
            .cwiseProduct(on_host(a) * on_host(up));
    const auto allowed = expected.array().abs() * 1.0001 * std::ldexp(1, -24) + 1e-10;
    CHECK(((on_host(out) - expected).array().abs() <= allowed).all());
  }
}

TEST_CASE("activations of fp32 are accurate over their whole range") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  std::vector<float> gates = {0.0F, -0.0F, 1e-30F, -1e-30F, 100.0F, -100.0F, 1e15F, -1e15F};
  for (int i = -2400; i <= 2400; ++i) gates.push_back(static_cast<float>(i) / 200.0F);
  for (const char* text :
       {"simt:block_m=64,block_n=32,thread_m=4,thread_n=4", "mma:block_m=64,block_n=32,block_k=32",
        "wgmma_fp32:block_m=64,block_n=8,chains=2"}) {
    for (const Activation activation : test::kAllActivations) {
      const std::vector<float> values = activations_of(*bench, text, gates, activation);
      if (values.empty()) continue;
      double worst = 0;
      for (std::size_t i = 0; i < gates.size(); ++i) {
        const double right = test::exact_activation(gates[i], activation);
        worst = std::max(worst, std::abs(values[i] - right) / (1e-6 + 1e-6 * std::abs(right)));
      }
      INFO(text << " " << to_string(activation));
      CHECK(worst <= 1);
    }
  }
}

TEST_CASE("the gate and its factor are not mixed up, nor are columns") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  // Gates count the columns, factors the rows of the weights in powers of two.
  Problem problem = test::geglu(33, 130, 8, DType::fp32, Layout::tt, Activation::relu);
  problem.ldb = 132;
  test::GivenMatrices given;
  given.a.assign(33 * 8, 1.0F);
  for (int k = 0; k < 8; ++k) {
    for (int n = 0; n < 130; ++n) {
      given.b.push_back(k == 0 ? static_cast<float>(n - 4) : 0.0F);
      given.up.push_back(static_cast<float>(1 << k));
    }
  }
  for (const char* text :
       {"simt:block_m=64,block_n=64,thread_m=8,thread_n=4", "mma:block_m=64,block_n=64,block_k=32",
        "wgmma_fp32:block_m=64,block_n=64,chains=1",
        "wgmma_fp32:block_m=128,block_n=32,chains=2"}) {
    const auto config = parse_config(text, *find_family("geglu"));
    REQUIRE(config);
    if (!is_served(bench->gpu().spec, *config, problem)) continue;
    const std::vector<float> values = test::run_given(*bench, *config, problem, given);
    int wrong = 0;
    for (int i = 0; i < 33 * 130; ++i) {
      wrong +=
          values[static_cast<std::size_t>(i)] != static_cast<float>(std::max(i % 130 - 4, 0) * 255);
    }
    INFO(text);
    CHECK(wrong == 0);
  }
}

TEST_CASE("sampled gated configs are right in every type, layout and activation", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  std::uint64_t seed = 1;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : test::kAllLayouts) {
      const Activation activation = test::kAllActivations[(seed / 2 + seed / 8) % 4];
      batch.sample(test::geglu(200, 312, 136, dtype, layout, activation), 2, seed++);
      batch.sample(test::geglu(129, 77, 65, dtype, layout, activation), 2, seed++);
    }
  }
  batch.check();
}

TEST_CASE("gated kernels are right on ragged and long problems, and into fp32", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  test::Batch batch(*measurer);
  std::uint64_t seed = 100;
  for (const Activation activation : test::kAllActivations) {
    for (const DType dtype : test::kAllDTypes) {
      batch.sample(test::geglu(1, 1524, 1000, dtype, Layout::tn, activation), 2, seed++);
      batch.sample(test::geglu(100, 1524, 512, dtype, Layout::tn, activation), 4, seed++);
    }
    Problem wide = test::geglu(1000, 1016, 4096, DType::bf16, Layout::tn, activation);
    batch.sample(wide, 4, seed++);
    wide.out_dtype = DType::fp32;
    batch.sample(wide, 4, seed++);
  }
  // With ptxas 13.0 at -O3 these lose a pointer's step (kernels/gemm/NOTES.md).
  for (const char* stages : {"stages=6", "stages=8"}) {
    const auto config = parse_config(
        "mma:block_m=32,block_n=64,block_k=32,warps_m=1,warps_n=1,split_k=1," + std::string(stages),
        *find_family("geglu"));
    REQUIRE(config);
    for (const int m : {1, 2}) {
      batch.add(test::geglu(m, 1524, 1000, DType::fp16, Layout::tn, Activation::gelu_tanh),
                *config);
    }
  }
  batch.check();
}

TEST_CASE("wgmma_fp32 gates in every layout and activation, ragged, and over many tiles") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  struct Size {
    std::int64_t m, n, k;
  };
  constexpr Size kSizes[] = {{203, 77, 101}, {1, 1524, 512}, {3100, 1252, 20}, {2500, 2508, 484}};
  test::Batch batch(*measurer);
  int turn = 0;
  for (const Layout layout : test::kAllLayouts) {
    for (const Size& size : kSizes) {
      const Activation activation = test::kAllActivations[(turn + turn / 4) % 4];
      ++turn;
      Problem problem = test::geglu(size.m, size.n, size.k, DType::fp32, layout, activation);
      problem.lda = (problem.lda + 3) / 4 * 4;
      problem.ldb = (problem.ldb + 3) / 4 * 4;
      std::vector<const char*> texts = {
          "wgmma_fp32:block_m=64,block_n=32,stages=5,cut_stages=2,chains=1,cutters=3",
          "wgmma_fp32:block_m=128,block_n=64,stages=4,cut_stages=2,chains=2,cutters=7",
          "wgmma_fp32:block_m=192,block_n=32,stages=3,cut_stages=3,chains=2,cutters=3"};
      if (b_is_k_major(layout)) {  // else a matrix of weights fills slabs of 32 columns
        texts.push_back(
            "wgmma_fp32:block_m=128,block_n=56,stages=4,cut_stages=2,chains=2,cutters=3");
        texts.push_back(
            "wgmma_fp32:block_m=64,block_n=24,stages=8,cut_stages=2,chains=1,cutters=7");
      }
      for (const char* text : texts) {
        const auto config = parse_config(text, *find_family("geglu"));
        REQUIRE(config);
        if (!is_served(measurer->gpu().spec, *config, problem)) continue;
        batch.add(problem, *config);
      }
    }
  }
  batch.check();
}

TEST_CASE("the baseline of a gated problem is two products, or one, and an elementwise kernel") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const Layout layout : {Layout::tn, Layout::tt}) {
      for (const std::int64_t n : {512, 77}) {
        const Problem problem = test::geglu(100, n, 256, dtype, layout, Activation::gelu_tanh);
        const auto ours = test::default_request(problem, measurer->gpu().spec);
        worker::CompareRequest request;
        request.problem = problem;
        request.contenders = {{ours.config, ours.cubin, {}}};
        request.baseline = true;
        request.rounds = 10;
        const auto reply = measurer->compare(request);
        INFO(describe(problem) << ": " << reply.log);
        REQUIRE(reply.outcome == Outcome::ok);
        CHECK(reply.baseline.rfind("cublas", 0) == 0);
        CHECK(reply.baseline.find("elementwise kernel") != std::string::npos);
        CHECK(reply.sides.back().measurement.result_error < (dtype == DType::fp32 ? 1.5e-5 : 7e-3));
      }
    }
  }
}

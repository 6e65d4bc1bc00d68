// wgmma_fp32 beside the same sums by FFMA and in fp64: layouts, ragged edges, every alignment of C,
// and the inputs whose parts are not the whole.
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "test/gpu/check_sample.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/given_gemm.h"

using namespace autotune;
using test::GivenMatrices;

namespace {

using Values = std::vector<float>;

constexpr const char* kConfigs[] = {
    "wgmma_fp32:block_m=64,block_n=24,stages=4,cut_stages=2,chains=1,cutters=3",
    "wgmma_fp32:block_m=128,block_n=64,stages=4,cut_stages=3,chains=2,cutters=7",
    "wgmma_fp32:block_m=192,block_n=80,stages=2,cut_stages=2,chains=1,cutters=3",
    "wgmma_fp32:block_m=128,block_n=128,stages=3,cut_stages=2,chains=2,cutters=3",
};
constexpr const char* kGatedConfigs[] = {
    "wgmma_fp32:block_m=64,block_n=24,stages=4,cut_stages=2,chains=1,cutters=3",
    "wgmma_fp32:block_m=128,block_n=56,stages=4,cut_stages=3,chains=2,cutters=7",
    "wgmma_fp32:block_m=192,block_n=32,stages=2,cut_stages=2,chains=1,cutters=3",
};
constexpr const char* kFfma =
    "simt:block_m=64,block_n=64,block_k=16,stages=3,thread_m=8,thread_n=4,min_blocks=1";

Config config_of(const char* text, const Problem& p) {
  return parse_config(text, *find_family(p.family)).value();
}

std::span<const char* const> configs_for(const Problem& p) {
  return is_gated(p) ? std::span<const char* const>(kGatedConfigs) : kConfigs;
}

// The workbench, where the GPU has the kernel's instruction.
gpu::Workbench* hopper() {
  gpu::Workbench* bench = test::workbench();
  if (bench != nullptr && bench->gpu().spec.limits.has(Feature::wgmma)) return bench;
  return nullptr;
}

// Rows of A and B start on 16 bytes, those of C anywhere.
Problem with_loadable_rows(Problem p) {
  p.lda = (p.lda + 3) / 4 * 4;
  p.ldb = (p.ldb + 3) / 4 * 4;
  return p;
}
Problem product(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout) {
  return with_loadable_rows(test::gemm(m, n, k, DType::fp32, layout));
}

template <typename Draw>
Values drawn(std::int64_t count, std::uint64_t seed, Draw draw) {
  std::mt19937_64 random(seed);
  Values values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(draw(random));
  return values;
}
double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }

template <typename Draw>
GivenMatrices made(const Problem& p, Draw draw) {
  return {drawn(p.m * p.k, 1, draw), drawn(p.k * p.n, 2, draw),
          p.beta != 0 ? drawn(p.m * p.n, 3, draw) : Values(),
          is_gated(p) ? drawn(p.k * p.n, 4, draw) : Values()};
}

// Root mean square of the errors against fp64, each relative to the absolute values added up.
double error_of(const Values& values, const Problem& p, const GivenMatrices& given) {
  double squares = 0;
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      double sum = 0;
      double size = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        const double product = double{given.a[static_cast<std::size_t>(row * p.k + k)]} *
                               given.b[static_cast<std::size_t>(k * p.n + column)];
        sum += product;
        size += std::abs(product);
      }
      const auto at = static_cast<std::size_t>(row * p.n + column);
      const double c = p.beta == 0 ? 0 : p.beta * given.c[at];
      const double error =
          (values[at] - (p.alpha * sum + c)) / (std::abs(p.alpha) * size + std::abs(c));
      squares += error * error;
    }
  }
  return std::sqrt(squares / static_cast<double>(values.size()));
}

void compile_ahead(gpu::Workbench& bench, const Problem& p) {
  std::vector<std::pair<Config, Problem>> wanted{{config_of(kFfma, p), p}};
  for (const char* text : configs_for(p)) wanted.emplace_back(config_of(text, p), p);
  test::compile_ahead(wanted, bench.gpu().spec);
}

void check_near(gpu::Workbench& bench, const Problem& p, const GivenMatrices& given) {
  compile_ahead(bench, p);
  const double allowed =
      2 * error_of(test::run_given(bench, config_of(kFfma, p), p, given), p, given);
  for (const char* text : configs_for(p)) {
    INFO(describe(p) << " with " << text);
    CHECK(error_of(test::run_given(bench, config_of(text, p), p, given), p, given) <= allowed);
  }
}

bool same_number(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Where FFMA's number is none, or everywhere, the very same.
void check_same(gpu::Workbench& bench, const Problem& p, const GivenMatrices& given,
                bool everywhere) {
  compile_ahead(bench, p);
  const Values ffma = test::run_given(bench, config_of(kFfma, p), p, given);
  for (const char* text : configs_for(p)) {
    const Values values = test::run_given(bench, config_of(text, p), p, given);
    int others = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool must = everywhere || !std::isfinite(ffma[i]) || !std::isfinite(values[i]);
      others += must && !same_number(values[i], ffma[i]) ? 1 : 0;
    }
    INFO(describe(p) << " with " << text);
    CHECK(others == 0);
  }
}

}  // namespace

TEST_CASE("wgmma_fp32 in every layout, ragged, whatever the rows of C start on", "[spread]") {
  gpu::Workbench* bench = hopper();
  if (bench == nullptr) return;
  for (const Layout layout : test::kAllLayouts) {
    for (const std::int64_t gap : {0, 1, 3}) {  // C's rows start on 4, 8 and 16 bytes
      Problem p = product(203, 77, 101, layout);
      p.ldc += gap;
      p.alpha = -0.75;
      p.beta = gap == 0 ? 0 : 2;
      check_near(*bench, p, made(p, normal));
    }
    check_near(*bench, product(1, 8, 16, layout), made(product(1, 8, 16, layout), normal));
  }
}

TEST_CASE("wgmma_fp32 is as near to fp64 as FFMA") {
  gpu::Workbench* bench = hopper();
  if (bench == nullptr) return;
  for (const std::int64_t k : {32, 1000, 4096, 16384}) {
    const Problem p = product(72, 88, k, Layout::tn);
    check_near(*bench, p, made(p, normal));
    check_near(*bench, p, made(p, [](auto& random) { return std::abs(normal(random)); }));
    check_near(*bench, p, made(p, [](auto& random) {
      return normal(random) * std::exp2(std::uniform_real_distribution<double>(-20, 20)(random));
    }));
  }
}

TEST_CASE("wgmma_fp32 hands on infinities and NaN, and overflows, as FFMA does") {
  gpu::Workbench* bench = hopper();
  if (bench == nullptr) return;
  const Problem p = product(150, 100, 300, Layout::tn);
  GivenMatrices given = made(p, normal);
  given.a[300 * 5 + 7] = std::numeric_limits<float>::infinity();
  given.b[100 * 100 + 3] = std::numeric_limits<float>::quiet_NaN();
  given.b[100 * 299 + 71] = -std::numeric_limits<float>::infinity();
  check_same(*bench, p, given, false);
  check_same(*bench, p, made(p, [](auto& random) { return normal(random) * 0x1p63; }), false);
}

TEST_CASE("wgmma_fp32 gives the numbers of FFMA where elements or sums are tiny") {
  gpu::Workbench* bench = hopper();
  if (bench == nullptr) return;
  for (const Layout layout : {Layout::tn, Layout::nt}) {
    const Problem p = product(150, 100, 300, layout);
    for (const bool of_a : {true, false}) {
      GivenMatrices given = made(p, normal);
      for (float& value : given.a) value *= of_a ? 0x1p-128F : 0x1p100F;
      for (float& value : given.b) value *= of_a ? 0x1p100F : 0x1p-128F;
      check_same(*bench, p, given, true);
    }
    check_same(*bench, p, made(p, [](auto& random) { return normal(random) * 0x1p-68; }), true);
  }
}

TEST_CASE("gated, wgmma_fp32 gives the numbers of FFMA where parts are not the whole") {
  gpu::Workbench* bench = hopper();
  if (bench == nullptr) return;
  const Problem p =
      with_loadable_rows(test::geglu(150, 100, 300, DType::fp32, Layout::tn, Activation::relu));
  const auto scaled = [&](float a, float b, float up) {
    GivenMatrices given = made(p, normal);
    for (float& value : given.a) value *= a;
    for (float& value : given.b) value *= b;
    for (float& value : given.up) value *= up;
    return given;
  };
  check_same(*bench, p, scaled(0x1p-128F, 0x1p100F, 0x1p100F), true);
  check_same(*bench, p, scaled(0x1p100F, 0x1p-128F, 0x1p-80F), true);
  check_same(*bench, p, scaled(0x1p100F, 0x1p-80F, 0x1p-128F), true);
  check_same(*bench, p, scaled(0x1p-68F, 0x1p-68F, 0x1p100F), true);  // sums alone are tiny
  check_same(*bench, p, scaled(0x1p-68F, 0x1p60F, 0x1p-68F), true);
  GivenMatrices given = made(p, normal);
  given.a[300 * 5 + 7] = std::numeric_limits<float>::infinity();
  given.b[100 * 100 + 3] = std::numeric_limits<float>::quiet_NaN();
  given.up[100 * 299 + 71] = -std::numeric_limits<float>::infinity();
  check_same(*bench, p, given, false);
}

TEST_CASE("wgmma_fp32's rings turn over many tiles", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr || hopper() == nullptr) return;
  test::Batch batch(*measurer);
  for (const Layout layout : {Layout::tn, Layout::nt}) {
    for (const std::int64_t k : {20, 96, 1028}) {  // fewer k tiles than stages, as many, more
      const Problem problem = test::gemm(3100, 2508, k, DType::fp32, layout);
      for (const char* text : kConfigs) batch.add(problem, config_of(text, problem));
    }
  }
  batch.check();
}

// fp32 on tensor cores beside the same sums by FFMA: as near to fp64 for every kind of input, and
// where parts cannot hold the elements or the products, the very same numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/gpu/default_cases.h"
#include "test/gpu/given_gemm.h"

using namespace autotune;
using test::GivenMatrices;

namespace {

using Values = std::vector<float>;

constexpr const char* kConfigs[] = {
    "mma:block_m=32,block_n=32,block_k=32,stages=4,warps_m=2,warps_n=2",
    "mma:block_m=64,block_n=64,block_k=32,stages=3,warps_m=2,warps_n=2",
    "mma:block_m=64,block_n=32,block_k=16,stages=2,warps_m=1,warps_n=1",
    "mma:block_m=16,block_n=64,block_k=64,stages=3,warps_m=1,warps_n=2",
    "mma:block_m=32,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=1,split_k=3",
};

// Draws from a kind of numbers; the same for a seed.
template <typename Draw>
GivenMatrices made(const Problem& p, std::uint64_t seed, Draw draw) {
  std::mt19937_64 random(seed);
  const auto fill = [&](std::int64_t count) {
    Values values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(draw(random));
    return values;
  };
  GivenMatrices given;
  given.a = fill(p.m * p.k);
  given.b = fill(p.k * p.n);
  if (p.beta != 0) given.c = fill(p.m * p.n);
  return given;
}

double normal(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }
double between(std::mt19937_64& random, double least, double most) {
  return std::uniform_real_distribution<double>(least, most)(random);
}

struct Exact {
  std::vector<double> value;
  std::vector<double> size;  // the same sums of absolute values
};

Exact exact_of(const Problem& p, const GivenMatrices& given) {
  Exact exact;
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
      const double c =
          p.beta == 0 ? 0 : p.beta * given.c[static_cast<std::size_t>(row * p.n + column)];
      exact.value.push_back(p.alpha * sum + c);
      exact.size.push_back(std::abs(p.alpha) * size + std::abs(c));
    }
  }
  return exact;
}

// Root mean square of the elements' errors, each relative to what was added up for it. Infinities
// and NaN are left out.
double error_of(const Values& values, const Exact& exact) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || exact.size[i] == 0) continue;
    const double error = (values[i] - exact.value[i]) / exact.size[i];
    sum += error * error;
    count += 1;
  }
  return std::sqrt(sum / std::max(count, 1.0));
}

bool same_number(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Elements that are not FFMA's though they must be: all of them, or those where either the product
// or the value is no finite number. (Where FFMA alone overflows, a finite value is the better one.)
int other_numbers(const Values& values, const Values& ffma, const Exact& exact, bool all) {
  int count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool must = all || !std::isfinite(values[i]) || !std::isfinite(exact.value[i]);
    count += must && !same_number(values[i], ffma[i]) ? 1 : 0;
  }
  return count;
}

Config config_of(const std::string& text) {
  return parse_config(text, *find_family("gemm")).value();
}

Values by_ffma(gpu::Workbench& bench, Problem problem, const GivenMatrices& given) {
  problem.exact_fp32 = true;
  const Config config = test::default_config(problem, bench.gpu().spec).config;
  REQUIRE(config.kernel->name() == "simt");
  return test::run_given(bench, config, problem, given);
}

// `same`: every element must be the one of FFMA; otherwise as near to fp64, twice its error.
void check(gpu::Workbench& bench, const Problem& problem, const GivenMatrices& given, bool same) {
  std::vector<std::pair<Config, Problem>> wanted;
  for (const char* text : kConfigs) wanted.emplace_back(config_of(text), problem);
  test::compile_ahead(wanted, bench.gpu().spec);
  const Values ffma = by_ffma(bench, problem, given);
  const Exact exact = exact_of(problem, given);
  const double allowed = 2 * error_of(ffma, exact);
  for (const char* text : kConfigs) {
    const Values values = test::run_given(bench, config_of(text), problem, given);
    INFO(describe(problem) << " with " << text);
    CHECK(other_numbers(values, ffma, exact, same) == 0);
    CHECK(error_of(values, exact) <= allowed);
  }
}

Problem product(std::int64_t k) { return test::gemm(64, 72, k, DType::fp32, Layout::tn); }

}  // namespace

TEST_CASE("fp32 in parts is as near to fp64 as FFMA") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const std::int64_t k : {64, 1000, 4096, 16384}) {
    const Problem p = product(k);
    check(*bench, p, made(p, 1, normal), false);
    check(*bench, p, made(p, 2, [](auto& random) { return between(random, 0, 1); }), false);
    const auto wide = [](auto& random) {
      return normal(random) * std::exp2(between(random, -20, 20));
    };
    check(*bench, p, made(p, 3, wide), false);
  }
}

TEST_CASE("fp32 in parts near the largest number: as FFMA where that overflows, near where not") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem p = product(1000);
  check(*bench, p, made(p, 1, [](auto& random) { return normal(random) * 0x1p61; }), false);
  GivenMatrices given = made(p, 2, normal);
  for (std::size_t i = 0; i < given.a.size(); i += 37) {
    given.a[i] = std::copysign(std::numeric_limits<float>::max(), given.a[i]);
  }
  for (float& value : given.b) value *= 0x1p-20F;
  check(*bench, p, given, false);
}

TEST_CASE("fp32 in parts gives the numbers of FFMA where elements or sums are tiny") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem p = product(1000);
  GivenMatrices given = made(p, 1, normal);
  for (float& value : given.a) value *= 0x1p-128F;
  for (float& value : given.b) value *= 0x1p100F;
  check(*bench, p, given, true);
  check(*bench, p, made(p, 2, [](auto& random) { return normal(random) * 0x1p-68; }), true);
  // The last elements whose parts hold them whole.
  const auto least = [](auto& random) { return between(random, 1, 2) * 0x1p-110; };
  given = made(p, 3, least);
  for (float& value : given.b) value *= 0x1p120F;
  check(*bench, p, given, false);
}

TEST_CASE("fp32 in parts hands on infinities and NaN as FFMA does") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem p = product(300);
  GivenMatrices given = made(p, 1, normal);
  given.a[300 * 5 + 7] = std::numeric_limits<float>::infinity();
  given.b[72 * 100 + 3] = std::numeric_limits<float>::quiet_NaN();
  given.b[72 * 299 + 71] = -std::numeric_limits<float>::infinity();
  check(*bench, p, given, false);
}

TEST_CASE("fp32 in parts in every layout, ragged, with alpha and beta", "[spread]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const Layout layout : test::kAllLayouts) {
    for (const std::int64_t gap : {0, 3}) {
      Problem p = test::gemm(45, 77, 101, DType::fp32, layout);
      p.alpha = -0.5;  // exact, whichever product a compiler puts into the multiply-add
      p.beta = gap == 0 ? 0 : 2;
      p.lda += gap;
      p.ldb += gap;
      p.ldc += gap;
      check(*bench, p, made(p, 1, normal), false);
      GivenMatrices tiny = made(p, 2, normal);
      for (float& value : tiny.b) value *= 0x1p-130F;
      check(*bench, p, tiny, true);
    }
  }
}

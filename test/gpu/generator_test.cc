// The generator of inputs: normal, scaled, the same matrix in every layout.
#include <cmath>

#include "test/gpu/elements.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;
using gpu::DeviceMemory;
using gpu::Matrix;

namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
  double kurtosis = 0;
};
Moments moments(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  Moments m;
  for (const double v : values) m.mean += v / n;
  double fourth = 0;
  double second = 0;
  for (const double v : values) {
    second += std::pow(v - m.mean, 2) / n;
    fourth += std::pow(v - m.mean, 4) / n;
  }
  m.deviation = std::sqrt(second);
  m.kurtosis = fourth / (second * second);
  return m;
}

}  // namespace

TEST_CASE("inputs are normal with the scale that was asked for, in every type") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  constexpr std::int64_t kRows = 1021;
  constexpr std::int64_t kColumns = 1031;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    INFO(to_string(dtype));
    const auto bytes = static_cast<std::size_t>(kRows * kColumns * storage_bytes(dtype));
    auto memory = DeviceMemory::allocate(bytes);
    REQUIRE(memory);
    const Matrix matrix{memory->address(), dtype, kRows, kColumns, kColumns, 1};
    REQUIRE(bench->fill_normal(matrix, 0.125, 9));
    const Moments m = moments(test::fetch(*bench, matrix, bytes));
    CHECK(std::fabs(m.mean) < 0.125 * 0.005);
    CHECK(m.deviation == Approx(0.125).epsilon(0.01));
    CHECK(m.kurtosis == Approx(3).epsilon(0.03));
  }
}

TEST_CASE("a seed gives the same matrix in both layouts, another seed another one") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  constexpr std::int64_t kRows = 33;
  constexpr std::int64_t kColumns = 100;
  constexpr std::int64_t kRowPitch = 112;
  constexpr std::int64_t kColumnPitch = 40;
  auto memory = DeviceMemory::allocate(64 * 1024);
  REQUIRE(memory);
  REQUIRE(bench->fill_bytes(memory->address(), 0xff, memory->bytes()));
  const Matrix by_row{memory->address(), DType::fp32, kRows, kColumns, kRowPitch, 1};
  REQUIRE(bench->fill_normal(by_row, 1, 5));
  const auto first = test::fetch(*bench, by_row, memory->bytes());
  // Gaps between rows stay as they were.
  CHECK(bench->count_touched(memory->address(), kRows, kRowPitch * 4, kColumns * 4, kRowPitch * 4)
            .value() == 0);

  const Matrix by_column{memory->address(), DType::fp32, kRows, kColumns, 1, kColumnPitch};
  REQUIRE(bench->fill_normal(by_column, 1, 5));
  CHECK(test::fetch(*bench, by_column, memory->bytes()) == first);
  REQUIRE(bench->fill_normal(by_column, 1, 6));
  CHECK(test::fetch(*bench, by_column, memory->bytes()) != first);
}

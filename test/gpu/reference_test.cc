// The trusted reference against Eigen in fp64, in all layouts and types.
#include <Eigen/Dense>
#include <cmath>

#include "test/gpu/elements.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;
using gpu::DeviceMemory;
using gpu::Matrix;

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Stored {
  DeviceMemory memory;
  Matrix matrix;
};

// A matrix with a gap of 3 elements between its contiguous lines.
Stored make(gpu::Workbench& bench, DType dtype, std::int64_t rows, std::int64_t columns,
            bool along_columns, std::uint64_t seed) {
  const std::int64_t pitch = (along_columns ? columns : rows) + 3;
  const std::int64_t lines = along_columns ? rows : columns;
  auto memory =
      DeviceMemory::allocate(static_cast<std::size_t>(lines * pitch * storage_bytes(dtype)));
  REQUIRE(memory);
  const Matrix matrix{memory->address(),        dtype, rows, columns, along_columns ? pitch : 1,
                      along_columns ? 1 : pitch};
  REQUIRE(bench.fill_normal(matrix, 1.0, seed));
  return {std::move(*memory), matrix};
}

RowMajor on_host(gpu::Workbench& bench, const Stored& stored) {
  const auto values = test::fetch(bench, stored.matrix, stored.memory.bytes());
  return Eigen::Map<const RowMajor>(values.data(), stored.matrix.rows, stored.matrix.columns);
}

// Half a unit in the last place, relative.
double rounding(DType dtype) {
  if (dtype == DType::bf16) return std::ldexp(1, -8);
  return dtype == DType::fp16 ? std::ldexp(1, -11) : std::ldexp(1, -24);
}

void check_one(gpu::Workbench& bench, const Problem& p) {
  INFO(describe(p) << " beta " << p.beta);
  const Stored a = make(bench, p.dtype, p.m, p.k, a_is_k_major(p.layout), 1);
  const Stored b = make(bench, p.dtype, p.k, p.n, !b_is_k_major(p.layout), 2);
  const Stored c = make(bench, p.out_dtype, p.m, p.n, true, 3);
  const std::int64_t out_bytes = p.m * p.n * storage_bytes(p.out_dtype);
  auto out = DeviceMemory::allocate(static_cast<std::size_t>(out_bytes));
  REQUIRE(out);
  REQUIRE(bench.fill_bytes(out->address(), 0xff, out->bytes()));
  const Matrix tight{out->address(), p.out_dtype, p.m, p.n, p.n, 1};
  REQUIRE(bench.reference({a.matrix, b.matrix, c.matrix, tight, p.alpha, p.beta}));

  const RowMajor expected =
      p.alpha * (on_host(bench, a) * on_host(bench, b)) + p.beta * on_host(bench, c);
  const auto values = test::fetch(bench, tight, out->bytes());
  const RowMajor got = Eigen::Map<const RowMajor>(values.data(), p.m, p.n);
  // Rounded once: every element is within half a unit, but for the smallest fp16 numbers, and for
  // Eigen's own summing order.
  const double slack = 1e-12 * std::sqrt(static_cast<double>(p.k)) + 6e-8;
  const auto allowed = expected.array().abs() * rounding(p.out_dtype) * 1.0001 + slack;
  CHECK(((got - expected).array().abs() <= allowed).all());
}

}  // namespace

TEST_CASE("the reference equals Eigen in every layout and type") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
      for (const double beta : {0.0, -0.5}) {
        Problem problem;
        problem.m = 65;
        problem.n = 130;
        problem.k = 47;
        problem.dtype = dtype;
        problem.out_dtype = default_out_dtype(dtype);
        problem.layout = layout;
        problem.alpha = beta == 0 ? 1.0 : 1.25;
        problem.beta = beta;
        check_one(*bench, problem);
      }
    }
  }
}

TEST_CASE("the reference at the edges: single rows, columns and products, fp32 out of bf16") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const std::int64_t extents[][3] = {
      {1, 1, 1}, {1, 200, 33}, {129, 1, 16}, {64, 64, 1}, {7, 3, 500}};
  for (const auto& [m, n, k] : extents) {
    Problem problem;
    problem.m = m;
    problem.n = n;
    problem.k = k;
    problem.out_dtype = DType::fp32;
    check_one(*bench, problem);
  }
}

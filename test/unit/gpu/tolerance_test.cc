#include "autotune/gpu/tolerance.h"

#include <cmath>

#include "kernels/problem.h"
#include "kernels/stages.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

Problem product(DType dtype, std::int64_t k) {
  Problem problem;
  problem.m = problem.n = 64;
  problem.k = k;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  return checked(problem).value();
}

constexpr DType kAll[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};

}  // namespace

TEST_CASE("the bounds of each dtype") {
  CHECK(gpu::bounds_for(product(DType::bf16, 4096)).frobenius == 2.5e-3);
  CHECK(gpu::bounds_for(product(DType::fp16, 4096)).frobenius == 4e-4);
  CHECK(gpu::bounds_for(product(DType::tf32, 4096)).frobenius == 1e-3);
  CHECK(gpu::bounds_for(product(DType::fp32, 4096)).frobenius == 1e-5);
}

TEST_CASE("the bounds catch a dropped slice of 8 along k, up to the largest k of the suites") {
  for (const DType dtype : kAll) {
    for (const std::int64_t k : {16, 512, 4096, 28672}) {
      // Independent products: leaving 8 of k out is an error of sqrt(8 / k).
      const double dropped = std::sqrt(8.0 / static_cast<double>(k));
      CHECK(gpu::bounds_for(product(dtype, k)).frobenius * 5 < dropped);
    }
  }
}

TEST_CASE("the bounds leave room for fp32 accumulation") {
  CHECK(gpu::bounds_for(product(DType::fp16, 11008)).frobenius > 7.1e-5 * 2);
  CHECK(gpu::bounds_for(product(DType::fp32, 1 << 20)).frobenius > 1.2e-6 * 16 * 2);
  // Tensor cores truncate, so their error grows with k, not with its root.
  CHECK(gpu::bounds_for(product(DType::fp16, 1 << 17)).frobenius > 2.5e-5 * 32 * 2);
}

TEST_CASE("an MLP has the errors of both of its stages") {
  for (const DType dtype : kAll) {
    Problem problem = product(dtype, 512);
    problem.family = "geglu_mlp";
    problem.lda = problem.ldb = problem.ldc = 0;
    problem.n = 8192;
    problem = checked(problem).value();
    const gpu::Bounds first = gpu::bounds_for(stage_of(problem, 0));
    const gpu::Bounds second = gpu::bounds_for(stage_of(problem, 1));
    const gpu::Bounds both = gpu::bounds_for(problem);
    CHECK(both.frobenius == first.frobenius + second.frobenius);
    CHECK(both.rtol == second.rtol + first.frobenius);
    CHECK(both.atol == 8 * both.frobenius);
  }
}

TEST_CASE("a gated product has the errors of two, and still shows a dropped slice of one") {
  for (const DType dtype : kAll) {
    for (const std::int64_t k : {512, 4096, 28672}) {
      Problem problem = product(dtype, k);
      const double plain = gpu::bounds_for(problem).frobenius;
      problem.family = "geglu";
      const double gated = gpu::bounds_for(problem).frobenius;
      CHECK(gated == 1.5 * plain);
      // Of the second weights' products only: C is that much off.
      CHECK(gated * 3 < std::sqrt(8.0 / static_cast<double>(k)));
    }
  }
}

TEST_CASE("fp32 inputs with a narrow output are bound by the output's rounding") {
  Problem problem = product(DType::fp32, 512);
  problem.out_dtype = DType::bf16;
  CHECK(gpu::bounds_for(problem).frobenius == 2.5e-3);
  // Reference and result may round to neighbours.
  CHECK(gpu::bounds_for(problem).rtol >= 1.0 / 128);
}

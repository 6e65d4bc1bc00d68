#include "autotune/gpu/tolerance.h"

#include <algorithm>
#include <cmath>

#include "kernels/problem.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

double frobenius_bound(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 2.5e-3;
    case DType::fp16:
      return 4e-4;
    case DType::tf32:
      return 1e-3;
    case DType::fp32:
      return 1e-5;
  }
  return 0;
}

// One unit in the last place of the output, relative: reference and result may round apart.
double last_place(DType out) {
  switch (out) {
    case DType::bf16:
      return 1.0 / 128;
    case DType::fp16:
      return 1.0 / 1024;
    default:
      return 1.0 / (1 << 23);
  }
}

// What accumulating k products in fp32 costs, relative to the result. Tensor cores truncate, so
// their error grows with k (2.5e-5 at 4096, 7.1e-5 at 11008 in simulation); an FFMA chain rounds to
// nearest, so its error grows with the root (1.2e-6 at 4096). Twice that is allowed for. Below
// k = 60000 the dtype's own bound is the larger one everywhere but for fp16.
double accumulation_bound(DType dtype, double k) {
  return dtype == DType::fp32 ? 4e-8 * std::sqrt(k) : 1.3e-8 * k;
}

// The largest of up to 1e9 elements' errors is about 6 standard deviations; of as many products of
// two of them, such as dg u, 20.
constexpr double kTail = 8;
constexpr double kGatedTail = 24;

// What is wrong with the intermediate is as wrong in the output, relative to it, and the second
// stage adds its own.
Bounds bounds_of_mlp(const Problem& problem) {
  const Bounds first = bounds_for(stage_of(problem, 0));
  Bounds bounds = bounds_for(stage_of(problem, 1));
  bounds.frobenius += first.frobenius;
  bounds.atol = kTail * bounds.frobenius;
  bounds.rtol += first.frobenius;
  return bounds;
}

// C = f(g) u of two products whose errors are each of relative size e: to first order f'(g) dg u +
// f(g) du. For g and u of N(0, 1) that is sqrt(E f'^2 + E f^2) / sqrt(E f^2) = 1.41 (relu) to 1.45
// (gelu) times e, relative to C.
constexpr double kGatedSpread = 1.5;

}  // namespace

Bounds bounds_for(const Problem& problem) {
  if (is_mlp(problem)) return bounds_of_mlp(problem);
  Bounds bounds{};
  const double own = frobenius_bound(problem.dtype);
  // fp32 inputs may be stored as bf16: then both sides' rounding decides.
  const bool narrow = problem.out_dtype == DType::bf16 || problem.out_dtype == DType::fp16;
  const double output = narrow ? frobenius_bound(problem.out_dtype) : 0;
  bounds.frobenius = std::max({own, output, accumulation_bound(problem.dtype, problem.k)});
  if (is_gated(problem)) bounds.frobenius *= kGatedSpread;
  bounds.atol = (is_gated(problem) ? kGatedTail : kTail) * bounds.frobenius;
  bounds.rtol = last_place(problem.out_dtype) + bounds.frobenius;
  return bounds;
}

}  // namespace autotune::gpu

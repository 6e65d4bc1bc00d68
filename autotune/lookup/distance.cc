#include "autotune/lookup/distance.h"

#include <cmath>
#include <cstdint>

#include "kernels/problem.h"

namespace autotune::lookup {
namespace {

double steps(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

int other_treatments(const Problem& a, const Problem& b) {
  const KernelTraits of_a = traits_of(a);
  const KernelTraits of_b = traits_of(b);
  const bool other_alignment =
      of_a.align_a != of_b.align_a || of_a.align_b != of_b.align_b || of_a.align_c != of_b.align_c;
  return (a.mode != b.mode) + (of_a.beta != of_b.beta) + (a.exact_fp32 != b.exact_fp32) +
         (a.activation != b.activation) + other_alignment;
}

}  // namespace

std::optional<double> distance(const Problem& a, const Problem& b) {
  if (a.family != b.family || a.dtype != b.dtype || a.out_dtype != b.out_dtype ||
      a.layout != b.layout) {
    return std::nullopt;
  }
  return steps(a.m, b.m) + steps(a.n, b.n) + steps(a.k, b.k) + other_treatments(a, b);
}

}  // namespace autotune::lookup

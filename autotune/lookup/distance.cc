#include "autotune/lookup/distance.h"

#include <cmath>
#include <cstdint>

#include "kernels/problem.h"

namespace autotune::lookup {
namespace {

double steps(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

int other_treatments(const KernelTraits& a, const KernelTraits& b) {
  const bool other_alignment =
      a.align_a != b.align_a || a.align_b != b.align_b || a.align_c != b.align_c;
  return (a.beta != b.beta) + (a.exact_fp32 != b.exact_fp32) + (a.activation != b.activation) +
         other_alignment;
}

}  // namespace

std::optional<double> distance(const Problem& a, const Problem& b) {
  const KernelTraits of_a = traits_of(a);
  const KernelTraits of_b = traits_of(b);
  if (a.family != b.family || a.dtype != b.dtype || a.out_dtype != b.out_dtype ||
      of_a.layout != of_b.layout) {
    return std::nullopt;
  }
  return steps(a.m, b.m) + steps(a.n, b.n) + steps(a.k, b.k) + (a.mode != b.mode) +
         other_treatments(of_a, of_b);
}

}  // namespace autotune::lookup

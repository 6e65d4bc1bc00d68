#include "autotune/lookup/distance.h"

#include <cmath>
#include <cstdint>

namespace autotune::lookup {
namespace {

double steps(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

}  // namespace

std::optional<double> distance(const Problem& a, const Problem& b) {
  if (a.family != b.family || a.dtype != b.dtype || a.out_dtype != b.out_dtype ||
      a.layout != b.layout) {
    return std::nullopt;
  }
  return steps(a.m, b.m) + steps(a.n, b.n) + steps(a.k, b.k);
}

}  // namespace autotune::lookup

// Matrices that a test gives, element by element.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/problem.h"

namespace autotune::test {

// m x k, k x n and m x n fp32 values, row by row; c may be empty where beta is 0. `up`, of a gated
// family alone, is k x n as well.
struct GivenMatrices {
  std::vector<float> a;
  std::vector<float> b;
  std::vector<float> c;
  std::vector<float> up;
};

// Whole numbers so small that every sum of products is exact in fp32, in any order.
inline std::vector<float> whole_numbers(std::int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(random() % 17) - 8;
  return values;
}

// Of A times `weights`, row by row: each sum, and the sum of its products' sizes.
struct Sums {
  std::vector<double> sums;
  std::vector<double> sizes;
};
inline Sums sums_of(const Problem& p, const std::vector<float>& a,
                    const std::vector<float>& weights) {
  Sums out{std::vector<double>(static_cast<std::size_t>(p.m * p.n)),
           std::vector<double>(static_cast<std::size_t>(p.m * p.n))};
  for (std::int64_t row = 0; row < p.m; ++row) {
    for (std::int64_t i = 0; i < p.k; ++i) {
      const double factor = a[static_cast<std::size_t>(row * p.k + i)];
      for (std::int64_t column = 0; column < p.n; ++column) {
        const double term = factor * weights[static_cast<std::size_t>(i * p.n + column)];
        out.sums[static_cast<std::size_t>(row * p.n + column)] += term;
        out.sizes[static_cast<std::size_t>(row * p.n + column)] += std::abs(term);
      }
    }
  }
  return out;
}

}  // namespace autotune::test

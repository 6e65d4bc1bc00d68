// Elements of device matrices as doubles on the host.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "autotune/gpu/workbench.h"
#include "kernels/problem.h"
#include "test/support/catch.h"

namespace autotune::test {

// One stored element; fp16 by its definition, so that no GPU code checks itself.
inline double decode(const char* bytes, DType storage) {
  if (storage == DType::tf32 || storage == DType::fp32) {
    float value;
    std::memcpy(&value, bytes, 4);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  if (storage == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// rows x columns values, row by row, of a matrix whose allocation is `bytes` long.
inline std::vector<double> fetch(gpu::Workbench& bench, const gpu::Matrix& matrix,
                                 std::size_t bytes) {
  std::vector<char> raw(bytes);
  REQUIRE(bench.download(raw.data(), matrix.address, bytes));
  const int size = storage_bytes(matrix.storage);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t column = 0; column < matrix.columns; ++column) {
      const std::int64_t index = row * matrix.row_stride + column * matrix.column_stride;
      values.push_back(decode(raw.data() + index * size, matrix.storage));
    }
  }
  return values;
}

}  // namespace autotune::test

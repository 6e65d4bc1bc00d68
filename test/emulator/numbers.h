// Floating-point numbers as their bits.
#pragma once

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "test/emulator/program.h"

namespace autotune::emulator {

inline float float_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
inline std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

// To nearest, ties to even.
inline std::uint16_t to_bf16(float value) {
  return Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(value));
}
inline std::uint16_t to_fp16(float value) {
  return Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(value));
}
inline float from_bf16(std::uint16_t bits) { return float_of(std::uint32_t{bits} << 16); }
inline float from_fp16(std::uint16_t bits) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
}
// A tensor core ignores the lower 13 bits of what it takes for tf32.
inline float from_tf32(std::uint32_t bits) { return float_of(bits & ~0x1fffu); }
// To nearest, ties away from zero.
inline std::uint32_t to_tf32(std::uint32_t bits) {
  if (std::isnan(float_of(bits))) return 0x7fffffff;
  return (bits + 0x1000u) & ~0x1fffu;
}

// An element of a matrix instruction's operand.
inline float operand_value(const std::byte* at, Type type) {
  if (type == Type::tf32) {
    std::uint32_t bits;
    std::memcpy(&bits, at, 4);
    return from_tf32(bits);
  }
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  return type == Type::f16 ? from_fp16(bits) : from_bf16(bits);
}

}  // namespace autotune::emulator

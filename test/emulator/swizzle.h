// How the copy engine and the matrix instructions spread rows over the banks of shared memory.
#pragma once

#include <cstdint>

namespace autotune::emulator {

inline constexpr std::uint64_t kPiece = 16;  // bytes that are moved as one

// Where the piece goes that would lie at an address: within `width` bytes (32, 64 or 128), as
// address bits 7 and on say (CUDA programming guide, tensor swizzle modes).
inline std::uint64_t swizzled(std::uint64_t address, std::uint64_t width) {
  return address ^ (address >> 7 & (width / kPiece - 1)) << 4;
}

}  // namespace autotune::emulator

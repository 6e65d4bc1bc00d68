// What a warp does together with matrices in its registers and in shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "test/emulator/memory.h"
#include "test/emulator/program.h"

namespace autotune::emulator {

using Lanes = std::array<std::uint64_t*, 32>;  // the register files of a warp's threads

// mma.sync: d = a * b + c on 16 x 8 elements.
void multiply(const Instruction& instruction, const Operand* operands, const Lanes& lanes);

// ldmatrix and stmatrix; `addresses` are the lanes' own within the block. `actor`: the first
// thread.
void load_matrix(const Instruction& instruction, const Operand* operands, const Lanes& lanes,
                 const std::array<std::uint64_t, 32>& addresses, SharedMemory& shared,
                 const Actor& actor);
void store_matrix(const Instruction& instruction, const Operand* operands, const Lanes& lanes,
                  const std::array<std::uint64_t, 32>& addresses, SharedMemory& shared,
                  const Actor& actor);

// Whether a wgmma.mma_async reads A in registers, four of them, in place of a descriptor.
inline bool reads_fragments(const Instruction& instruction) {
  return instruction.operands - instruction.columns / 2 >= 8;
}

// wgmma.mma_async of warp `warp` of its four: d = a * b or d + a * b on its 16 rows. The sums are
// there at once, but what was read in shared memory, in pieces of 16 bytes, stays in `held` until
// somebody ends that: it must not change before the kernel has waited.
void group_multiply(const Instruction& instruction, const Operand* operands, const Lanes& lanes,
                    int warp, SharedMemory& shared, const Actor& actor,
                    std::vector<std::uint64_t>& held);

}  // namespace autotune::emulator

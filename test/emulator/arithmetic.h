// What a thread does by itself in its registers.
#pragma once

#include <cstdint>

#include "test/emulator/program.h"

namespace autotune::emulator {

// Whether the instruction is one of those. `registers` are the slots of one thread, each a value
// without sign in its lower bits.
bool calculate(const Instruction& instruction, const Operand* operands, std::uint64_t* registers);

// The bits that a register of the type keeps.
std::uint64_t kept(std::uint64_t value, Type type);

}  // namespace autotune::emulator

// What a thread does by itself in its registers.
#pragma once

#include <cstdint>

#include "test/emulator/program.h"

namespace autotune::emulator {

// Whether the instruction is one of those. `registers` are the slots of one thread, each a value in
// its lower bits, of which an instruction reads as many as its type has.
bool calculate(const Instruction& instruction, const Operand* operands, std::uint64_t* registers);

// The number that the bits of a signed type are.
std::int64_t signed_value(std::uint64_t bits, Type type);

}  // namespace autotune::emulator

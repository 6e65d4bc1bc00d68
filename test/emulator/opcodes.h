// The names of PTX instructions, of types and of what may stand behind a name: all that is known of
// them, which is what the kernels use. Anything else is a Fault.
#pragma once

#include <string_view>

#include "test/emulator/program.h"

namespace autotune::emulator {

struct OpName {
  std::string_view name;  // begins an opcode
  Op op;
};
const OpName& find_op(std::string_view opcode);

// What stands behind the name: ".relaxed.gpu.u32".
void take_modifiers(std::string_view modifiers, Instruction& out);

}  // namespace autotune::emulator

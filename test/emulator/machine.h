// Runs a launch of a kernel on the CPU, thread by thread, in an order that a seed decides: any
// thread may be far ahead of any other, and a copy may take any time. What a GPU would permit to
// go wrong then is found: a wait that never ends, memory that is used while a copy or a matrix
// instruction is still at it, accesses out of bounds, a warp that is not together where it must be.
//
// Not modelled: the order in which other threads see plain writes to shared and global memory, the
// rounding of tensor cores, time.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "test/emulator/memory.h"
#include "test/emulator/program.h"

namespace autotune::emulator {

// Throws a Fault with the block, the thread and the line of PTX.
void run(const Program& program, const LaunchPlan& plan, const GlobalMemory& memory,
         std::uint64_t seed);

}  // namespace autotune::emulator

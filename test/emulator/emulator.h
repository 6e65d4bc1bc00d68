// Runs a launch of a kernel on the CPU, thread by thread, in an order that a seed decides: any
// thread may be far ahead of any other, and a copy may take any time. What a GPU would permit to
// go wrong then is found: a wait that never ends; memory that two warps use without a barrier
// between them; shared memory that is used while a copy or a matrix instruction is still at it, or
// asynchronously without a fence; global memory that the copy engine reads without a fence by the
// thread that wrote there; what a launch ahead writes and has not written yet; accesses out of
// bounds or not aligned; a warp that is not together where it must be; barriers that are miscounted
// or belong to a block that has ended.
//
// Not modelled: the rounding of tensor cores and of approximate functions; registers, of which PTX
// has as many as it likes; masks of parts of a warp; the scope of an arrival; the fence of a
// thread that was told what others wrote to global memory, before it asks the copy engine; sizes at
// which an index leaves 32 bits; time.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "test/emulator/memory.h"
#include "test/emulator/program.h"

namespace autotune::emulator {

// Throws a Fault with the block, the thread and the line of PTX.
void run(const Program& program, const LaunchPlan& plan, GlobalMemory& memory, std::uint64_t seed);

}  // namespace autotune::emulator

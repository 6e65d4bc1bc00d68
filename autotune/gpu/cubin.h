// What a compiled kernel really takes, read from the cubin's ELF sections and the compiler's log.
// No GPU, no driver, no CUDA header.
#pragma once

#include <string_view>

#include "autotune/types.h"
#include "kernels/resources.h"

namespace autotune::gpu {

// Registers, static shared memory, stack, barriers, cluster and the most threads per block of one
// entry point. How much spills is not in a cubin, see add_compiler_report, but whether it does.
// Reads arbitrary bytes safely; corrupt_file for anything that is not a whole cubin of a known
// compute capability with that entry point.
Expected<ActualResources> read_cubin(std::string_view image, std::string_view entry);

// Adds what only the log of `--ptxas-options=-v` says about one entry point: bytes of spill stores
// and loads, and whether ptxas serialised wgmma or ignored setmaxnreg (C7508, C7510 to C7512).
void add_compiler_report(std::string_view log, std::string_view entry, ActualResources& resources);

}  // namespace autotune::gpu

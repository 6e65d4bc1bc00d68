// How many blocks of a kernel fit on one SM, by the same rules as the driver's occupancy call.
#pragma once

#include <cstdint>

#include "kernels/device_spec.h"

namespace autotune::search {

// 0 when not even one fits. `registers` is per thread as compiled; smem in bytes; `barriers` is the
// number of named barriers, barrier 0 included (0: no limit by barriers). Equals
// cudaOccMaxActiveBlocksPerMultiprocessor of CUDA 13.0 for a function whose shared-memory attribute
// is set to what it needs.
int blocks_per_sm(const ArchLimits& limits, int threads, int registers, std::int64_t dynamic_smem,
                  std::int64_t static_smem, int barriers = 0);

// Registers that the launch check counts for one block: its warps, rounded up to a multiple of the
// sub-partitions, times what a warp with so many registers per thread is given.
std::int64_t registers_of_block(const ArchLimits& limits, int threads, int registers);

// Registers per thread that ptxas may use under __launch_bounds__(threads, min_blocks): what a warp
// of the fullest sub-partition gets when min_blocks blocks are resident, floored to 8, at most what
// a thread can have. A min_blocks that the SM has no slots for is ignored, as ptxas does. (Seen
// with ptxas 13.0: 384 threads 168, 288 threads 168, 416 threads 128, 3 blocks of 160 threads 128,
// 16 of 64 threads 64.)
int launch_register_cap(const ArchLimits& limits, int threads, int min_blocks);

}  // namespace autotune::search

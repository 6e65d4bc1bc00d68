// How many blocks of a kernel fit on one SM, by the same rules as the driver's occupancy call.
#pragma once

#include <cstdint>

#include "kernels/device_spec.h"

namespace autotune::search {

// 0 when not even one fits. `registers` is per thread as compiled; smem in bytes.
int blocks_per_sm(const ArchLimits& limits, int threads, int registers, std::int64_t dynamic_smem,
                  std::int64_t static_smem);

// Registers per thread that ptxas may use under __launch_bounds__(threads, min_blocks):
// min(255, floor8(65536 / (min_blocks * roundup(threads, 128)))).
int launch_register_cap(const ArchLimits& limits, int threads, int min_blocks);

}  // namespace autotune::search

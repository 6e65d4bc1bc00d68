// Where a GPU runs the clusters of a grid. The driver does not tell, so blocks are asked. No CUDA
// header: tests use this too.
#pragma once

#include <span>
#include <vector>

#include "kernels/device_spec.h"

namespace autotune::gpu {

// The SM of each block of a launch, in the order of the grid, where no two blocks have had the
// same.
struct SeenGrid {
  int cluster = 2;  // blocks
  std::vector<int> sms;
};

// The GPC of each cluster of those grids that have clusters of 2, 4 or 8 blocks, which SMs of one
// cluster are of. SMs that only pairs take count as a GPC of two each. GPCs are numbered by size:
// such pairs are what others have left over, and stand beside the GPC that lacks most. Empty where
// there are more than kMostGpcs.
std::vector<ClusterGpcs> gpcs_of(std::span<const SeenGrid> grids);

// The entry by which blocks are asked (where.cuh): kernels in clusters have it in their code.
inline constexpr const char* kWhereEntry = "where_blocks_run";

// The same of the current context's GPU, from some ten launches of some microseconds on a stream of
// their own, for which it waits: the first time in a process, and where other work kept the GPU
// busy twice more. `module` (a CUmodule) has that entry. Empty where it has not, where
// the driver refuses and where the GPU was busy: nothing but speed depends on it.
std::vector<ClusterGpcs> cluster_gpcs(void* module, const DeviceSpec& device);

}  // namespace autotune::gpu

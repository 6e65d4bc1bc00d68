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
  int cluster = 1;  // blocks
  std::vector<int> sms;
};

// The GPC of each cluster of those grids that have clusters of 2, 4 or 8 blocks. SMs of a cluster
// are of one GPC. An SM that no cluster of more than two takes is of the GPC of the one before it
// in the grid without clusters, which fills GPCs one after the other; such SMs at its beginning are
// a group of their own. GPCs are numbered by size, as that group is most likely part of one that
// lacks SMs. Empty where there are more than kMostGpcs.
std::vector<ClusterGpcs> gpcs_of(std::span<const SeenGrid> grids);

// The same of the current context's GPU, from five launches of some microseconds on a stream of
// their own, in each process until they have told it. `module` (a CUmodule) has the entry of
// where.cuh. Empty where it has not, where the driver refuses, and where other work keeps the GPU
// busy: nothing but speed depends on it.
std::vector<ClusterGpcs> cluster_gpcs(void* module, const DeviceSpec& device);

}  // namespace autotune::gpu

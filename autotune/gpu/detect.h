// The GPUs of this machine, without creating a context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/types.h"
#include "kernels/device_spec.h"

namespace autotune::gpu {

struct DetectedGpu {
  int index = 0;  // as the driver counts
  DeviceSpec spec;
  std::string uuid;    // "GPU-0123abcd-..."
  std::string driver;  // CUDA version of the driver, "13.0"
};

// no_gpu where there is no driver or no device. A GPU of a compute capability that
// configs/gpus/compute_capabilities.yaml does not hold is left out, unless it is the only one: then
// no_gpu names it.
Expected<std::vector<DetectedGpu>> detect_gpus();

// The one that the driver counts as `index`; no_gpu tells which there are.
Expected<DetectedGpu> detect_gpu(int index);

// What the driver says of a device, in the driver's units.
struct DriverAttributes {
  std::string name;
  int cc = 0;
  int sm_count = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int l2_bytes = 0;
  std::uint64_t dram_bytes = 0;
  int smem_per_sm = 0;
  int smem_optin_per_block = 0;
  int smem_reserved_per_block = 0;
  int static_smem_per_block = 0;
  int threads_per_sm = 0;
  int threads_per_block = 0;
  int blocks_per_sm = 0;
  int registers_per_sm = 0;
  int registers_per_block = 0;
};

// The driver's numbers over what is known of the SKU (or nullptr). An unknown SKU takes the limits
// of its capability, and its rates from `relative` (or nullptr), scaled by SMs x clock; such fields
// are named in DeviceSpec::derived.
DeviceSpec merge(const DriverAttributes& attributes, const DeviceSpec* known,
                 const ArchLimits& limits, const DeviceSpec* relative);

}  // namespace autotune::gpu

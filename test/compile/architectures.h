// The architectures that everything is compiled for: those of configs/gpus, one GPU each.
#pragma once

#include <vector>

#include "autotune/io/builtin.h"

namespace autotune::test {

// One known GPU per compute capability, ascending.
inline std::vector<const DeviceSpec*> one_gpu_per_capability() {
  std::vector<const DeviceSpec*> gpus;
  for (const DeviceSpec& device : io::known_devices()) {
    if (gpus.empty() || gpus.back()->limits.cc != device.limits.cc) gpus.push_back(&device);
  }
  return gpus;
}

}  // namespace autotune::test

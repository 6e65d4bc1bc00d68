// The GPU that an answer is for.
#pragma once

#include "autotune/autotune.h"
#include "kernels/device_spec.h"

namespace autotune::lookup {

// options.device by name or slug (with the driver's numbers where it is here), else the GPU that
// the driver counts as options.ordinal. bad_input for a name that nobody knows, no_gpu.
Expected<DeviceSpec> device_for(const BestOptions& options);

}  // namespace autotune::lookup

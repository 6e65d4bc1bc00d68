// What a launch by the library costs above the driver's own call.
#pragma once

#include <functional>

#include "autotune/gpu/driver.h"
#include "autotune/types.h"

namespace bench {

// `launch` puts one kernel into the stream. Microseconds: the median of its times less that of the
// same cuLaunchKernelEx without the library, in turn with it. failed where either launch fails.
autotune::Expected<double> launch_overhead_us(
    const autotune::gpu::DriverApi& api, CUstream stream,
    const std::function<autotune::Expected<void>()>& launch);

}  // namespace bench

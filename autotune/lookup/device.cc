#include "autotune/lookup/device.h"

#include "autotune/gpu/detect.h"
#include "autotune/io/builtin.h"

namespace autotune::lookup {

Expected<DeviceSpec> device_for(const BestOptions& options) {
  if (options.device.empty()) {
    auto gpu = gpu::detect_gpu(options.ordinal);
    if (!gpu) return tl::unexpected(gpu.error());
    return std::move(gpu->spec);
  }
  if (const auto here = gpu::detect_gpus()) {
    for (const gpu::DetectedGpu& gpu : *here) {
      if (gpu.spec.slug == slug_of(options.device)) return gpu.spec;
    }
  }
  if (const DeviceSpec* known = io::find_device(options.device)) return *known;
  return fail(ErrorCode::bad_input, "unknown GPU '" + options.device +
                                        "'; give a name as the driver reports it (NVIDIA H200) or "
                                        "its slug (nvidia-h200)");
}

}  // namespace autotune::lookup

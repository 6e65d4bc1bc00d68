// Which GPU a command is about.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotune/cli/options.h"
#include "autotune/gpu/detect.h"
#include "autotune/types.h"
#include "kernels/device_spec.h"

namespace autotune::cli {

enum class Need : std::uint8_t {
  description,  // its numbers are enough: any known GPU will do
  gpu,          // it must be here
};

struct DeviceChoice {
  DeviceSpec spec;
  std::optional<int> index;  // as the driver counts, where it is here
};

using GpusHere = Expected<std::vector<gpu::DetectedGpu>>;

// From --device and --gpu-spec, with what the driver finds here. Errors: bad_input for a GPU that
// nobody knows (the message lists similar names); no_gpu for one that is needed and not here, with
// the driver's reason where there is no GPU at all, and for `auto` where there is none.
Expected<DeviceChoice> choose_device(const Options& options, Need need);
Expected<DeviceChoice> choose_device(const Options& options, Need need, const GpusHere& here);

}  // namespace autotune::cli

// Measured trials, wherever they were written down, as what the performance model is fitted to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "autotune/io/sweep.h"
#include "kernels/device_spec.h"
#include "search/fit.h"

namespace autotune::tune {

// The rows that worked. Clocks drift, so a time is the row's ratio times the reference config's
// median over the whole sweep.
std::vector<search::MeasuredConfig> observations_of(const io::Sweep& sweep);

struct Observations {
  std::vector<search::MeasuredConfig> trials;
  std::int64_t mlps = 0;  // trials left out, for the model is of single kernels
};

// From a cache (all trials on this device), a sweep file or a folder of them, a file of winners
// (*.yaml, as in configs/tuned), or a result of `tune` or `bench` with --json. Errors: those of
// reading it; bad_input for what was measured on another device.
Expected<Observations> read_observations(const std::filesystem::path& path,
                                         const DeviceSpec& device);

}  // namespace autotune::tune

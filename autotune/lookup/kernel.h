// How a Kernel comes to be, for those who found its code.
#pragma once

#include <string>

#include "autotune/autotune.h"
#include "kernels/kernel.h"

namespace autotune::lookup {

struct KernelMaker {
  // The config of an answer as an object, once more against the limits: the answer may have been
  // stored or edited. `problem` is best.problem, checked(). Errors: bad_input, nothing_fits.
  static Expected<Config> config_of(const BestConfig& best, const Problem& problem,
                                    const DeviceSpec& device);

  // Loads `image` into the current context and asks the driver whether it can run as planned.
  // Errors: no_gpu (no driver, no context), failed.
  static Expected<Kernel> make(const std::string& image, const Config& config,
                               const Problem& problem, const DeviceSpec& device);
};

}  // namespace autotune::lookup

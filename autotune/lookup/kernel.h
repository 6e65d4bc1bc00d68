// How a Kernel comes to be, for those who found its code.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "autotune/autotune.h"
#include "kernels/kernel.h"

namespace autotune::lookup {

struct KernelMaker {
  // The config of an answer as an object, once more against the limits: the answer may have been
  // stored or edited. `problem` is best.problem, checked(). Errors: bad_input, nothing_fits.
  static Expected<Config> config_of(const BestConfig& best, const Problem& problem,
                                    const DeviceSpec& device);

  // Loads each stage's image into the current context and asks the driver whether it can run as
  // planned; its tensor maps are encoded here. Errors: no_gpu (no driver, no context), failed.
  static Expected<Kernel> make(std::span<const std::string> images, const Config& config,
                               const Problem& problem, const DeviceSpec& device);
  // The same with the images that `code_of` has for each stage's config; its errors too.
  using CodeOf = std::function<Expected<std::string>(const Config& config, const Problem& stage)>;
  static Expected<Kernel> make(const Config& config, const Problem& problem,
                               const DeviceSpec& device, const CodeOf& code_of);
};

}  // namespace autotune::lookup

// The performance model: how long a config should take on a device, from the host twin's work terms.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace autotune::search {

// One term of the prediction in microseconds, for `explain`.
struct TimeTerm {
  std::string label;
  double us;
};

double predict_us(const Config& config, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms);
std::vector<TimeTerm> predict_terms(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Resources& resources,
                                    int max_sms);

}  // namespace autotune::search

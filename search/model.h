// The performance model: how long a config should take on a device, from the host twin's work
// terms.
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

// Microseconds from launch to end on an otherwise idle device. `resources` is the check's
// prediction for this config; `max_sms` > 0 caps the SMs. Good for ranking; the absolute error is
// tens of percent.
double predict_us(const Config& config, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms);

// The same where the work is known already: config.kernel->work(config, problem, device).
double predict_us(const Work& work, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms);

// First what adds up to the prediction (launch, fill, main loop, epilogue, split-k reduction), then
// "total", then what the main loop would take if it were bound by one unit alone ("alone: ...").
std::vector<TimeTerm> predict_terms(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Resources& resources,
                                    int max_sms);

}  // namespace autotune::search

// What a run says of itself in the cache.
#pragma once

#include <string>

#include "autotune/tune/tuner.h"
#include "autotune/worker/pool.h"
#include "cache/store.h"

namespace autotune::tune {

cache::RunInfo run_info(const DeviceSpec& device, const TuneOptions& options,
                        worker::MeasureWorker& measurer);

// Of the device with whatever else makes times of this run incomparable to those of others: times
// under a cap on SMs are not those of the whole device.
std::string run_fingerprint(const DeviceSpec& device, const search::Limits& limits);

}  // namespace autotune::tune

// A config as the user wrote it, completed.
#pragma once

#include <string>
#include <string_view>

#include "autotune/lookup/answer.h"
#include "autotune/types.h"
#include "kernels/kernel.h"
#include "search/plan.h"

namespace autotune::cli {

// Omitted parameters take the values of the best predicted survivor of the same kernel in `plan`
// (null: nothing fits), else the parameters' own defaults. bad_input as parse_config, with the
// option's name before it.
Expected<Config> choose_config(std::string_view option, const std::string& text,
                               const Family& family, const search::Plan* plan);

// The same for a problem, with the plan that it has within `bounds`; of one with several stages,
// the stages' configs joined.
Expected<Config> choose_for(std::string_view option, const std::string& text,
                            const Problem& problem, const DeviceSpec& device,
                            const lookup::Bounds& bounds);

}  // namespace autotune::cli

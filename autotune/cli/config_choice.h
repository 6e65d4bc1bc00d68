// A config as the user wrote it, completed.
#pragma once

#include <string>
#include <string_view>

#include "autotune/types.h"
#include "kernels/kernel.h"
#include "search/plan.h"

namespace autotune::cli {

// Omitted parameters take the values of the best predicted survivor of the same kernel in `plan`
// (null: nothing fits), else the parameters' own defaults. bad_input as parse_config, with the
// option's name before it.
Expected<Config> choose_config(std::string_view option, const std::string& text,
                               const Family& family, const search::Plan* plan);

}  // namespace autotune::cli

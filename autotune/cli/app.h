// The command line as a function, so that tests can call it.
#pragma once

#include <string>
#include <vector>

#include "autotune/cli/output.h"

namespace autotune::cli {

// Runs `autotune args...` and returns its exit code: 0 done, 1 failed, 2 wrong usage or bad input,
// 3 nothing fits, 4 no GPU or no compiler, 130 Ctrl-C. Never exits the process.
int run_cli(const std::vector<std::string>& args, const Streams& streams);

}  // namespace autotune::cli

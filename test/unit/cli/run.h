// The command line called in this process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "autotune/cli/app.h"
#include "test/support/shell.h"

namespace autotune::test {

inline Ran run(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = cli::run_cli(args, {out, err, 0});
  return {code, out.str(), err.str()};
}

}  // namespace autotune::test

// The command line called in this process.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "autotune/cli/app.h"

namespace autotune::test {

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

inline Ran run(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = cli::run_cli(args, {out, err, 0});
  return {code, out.str(), err.str()};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace autotune::test

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "autotune/cli/app.h"

namespace {

// Columns of the terminal behind stderr; 0 where it is a file or a pipe.
int terminal_columns() {
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  return autotune::cli::run_cli(args, {std::cout, std::cerr, terminal_columns()});
}

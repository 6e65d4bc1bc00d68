// Commands, the built executable above all, as a shell sees them: exit codes and what goes to which
// stream.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/catch.h"

namespace autotune::test {

struct Ran {
  int code = 0;  // as the shell says it: 128 + N where signal N ended it
  std::string out;
  std::string err;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Ran run_command(const std::string& command) {
  std::string err = (std::filesystem::temp_directory_path() / "autotune_err_XXXXXX").string();
  close(mkstemp(err.data()));
  Ran ran;
  FILE* pipe = popen((command + " 2>" + err).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    ran.out.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::ifstream file(err);
  ran.err.assign(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove(err);
  return ran;
}

// The program. `environment`: what stands before the command ("NAME=value ...").
inline Ran shell(const std::string& arguments, const std::string& environment = "") {
  return run_command(environment + " " AUTOTUNE_BINARY " " + arguments);
}

}  // namespace autotune::test

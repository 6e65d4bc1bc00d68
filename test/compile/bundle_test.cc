// `autotune bundle` on a machine with a compiler, and its file where there is none.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "autotune/session.h"
#include "test/support/catch.h"

using namespace autotune;

TEST_CASE("the command compiles what is missing; the file then serves without a compiler") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("autotune_bundle_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "h200.bundle").string();
  const std::string command =
      AUTOTUNE_BINARY " bundle gemm --m 256 --n 256 --k 256 --device nvidia-h200 -q --cache " +
      (folder / "none.db").string() + " -o " + file + " >/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);

  SessionOptions options;
  options.device = "nvidia-h200";
  options.use_cache = false;
  options.bundle = file;
  options.allow_compile = false;
  const auto session = Session::open(options);
  REQUIRE(session.has_value());
  Problem problem;
  problem.m = problem.n = problem.k = 256;
  // The code was found; what lacks is a current context, or a GPU at all.
  const auto kernel = session->kernel(problem);
  REQUIRE_FALSE(kernel.has_value());
  CHECK(kernel.error().code == ErrorCode::no_gpu);

  problem.beta = 1;  // other code, whatever the config
  const auto other = session->kernel(problem);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == ErrorCode::no_compiler);
  CHECK(other.error().message.find(file) != std::string::npos);
  std::filesystem::remove_all(folder);
}

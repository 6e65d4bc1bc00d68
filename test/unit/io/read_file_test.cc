#include <sys/stat.h>

#include <fstream>

#include "support.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"

namespace autotune::io {
namespace {

using test::TempFolder;

TEST_CASE("a regular file comes back whole") {
  const TempFolder folder;
  const auto file = folder.path() / "a.yaml";
  const std::string text(200'000, 'x');
  std::ofstream(file) << text;
  const auto read = read_file(file);
  REQUIRE(read);
  CHECK(*read == text);
}

TEST_CASE("a directory, a missing file and a FIFO are bad input at once") {
  const TempFolder folder;
  const auto directory = read_file(folder.path());
  REQUIRE(is_bad_input(directory));
  CHECK_THAT(directory.error().message, HasText("is a directory"));
  const auto missing = read_file(folder.path() / "none.yaml");
  REQUIRE(is_bad_input(missing));
  CHECK_THAT(missing.error().message, HasText("No such file"));
  const auto fifo = folder.path() / "fifo.yaml";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(is_bad_input(read_file(fifo)));
}

TEST_CASE("100 MB are refused without being read") {
  const TempFolder folder;
  const auto file = folder.path() / "big.yaml";
  std::ofstream(file) << "family: gemm\n";
  std::filesystem::resize_file(file, 100'000'000);
  const auto big = read_file(file);
  REQUIRE(is_bad_input(big));
  CHECK_THAT(big.error().message, HasText("larger than 16 MiB"));
}

TEST_CASE("every loader says which file it could not read") {
  const TempFolder folder;
  const std::string name = folder.path().string();
  CHECK_THAT(message_of(load_suite(name + "/", {})), Catch::Matchers::StartsWith(name));
  CHECK_THAT(message_of(load_space(name)), Catch::Matchers::StartsWith(name));
  CHECK_THAT(message_of(load_gpu(name)), Catch::Matchers::StartsWith(name));
}

}  // namespace
}  // namespace autotune::io

// Files that commands write: what is there when writing fails.
#include "autotune/cli/target_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "autotune/io/load.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using test::contains;
using test::TempFolder;

namespace {

std::string text_of(const std::filesystem::path& file) {
  const auto text = io::read_file(file);
  return text ? *text : "(" + text.error().message + ")";
}

}  // namespace

TEST_CASE("asking whether a file can be written leaves it as it is") {
  const TempFolder folder;
  std::ofstream(folder / "old") << "old";
  CHECK(cli::check_writable("--json", folder / "old"));
  CHECK(text_of(folder / "old") == "old");
  CHECK(cli::check_writable("--json", folder / "new"));
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
  CHECK(cli::check_writable("--json", "/dev/null"));

  const auto nowhere = cli::check_writable("--json", folder / "none/new");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::bad_input);
  CHECK(contains(nowhere.error().message, "--json: cannot write '"));
  CHECK(contains(nowhere.error().message, "No such file"));
  const auto itself = cli::check_writable("--json", folder.str());
  REQUIRE_FALSE(itself);
  CHECK(contains(itself.error().message, "directory"));
}

TEST_CASE("a file is replaced by a whole one, and stays where that fails") {
  const TempFolder folder;
  REQUIRE(cli::replace("--yaml", folder / "a", "first"));
  REQUIRE(cli::replace("--yaml", folder / "a", "second"));
  CHECK(text_of(folder / "a") == "second");
  std::filesystem::create_symlink("a", folder / "link");
  REQUIRE(cli::replace("--yaml", folder / "link", "third"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(text_of(folder / "a") == "third");
  // A folder cannot be replaced by a file: the new text is gone again, too.
  std::filesystem::create_directories(folder / "b/inside");
  const auto done = cli::replace("--yaml", folder / "b", "text");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::io_failed);
  CHECK(std::filesystem::is_directory(folder / "b/inside"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder.path())) {
    ++files;
  }
  CHECK(files == 3);
}

TEST_CASE("a full device is told") {
  for (const auto write : {cli::write_over, cli::replace}) {
    const auto done = write("--svg", "/dev/full", "text");
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::io_failed);
    CHECK(done.error().message == "--svg: cannot write '/dev/full': No space left on device");
  }
}

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
  std::filesystem::create_symlink("new", folder / "link");
  CHECK(cli::check_writable("--json", folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK_FALSE(std::filesystem::exists(folder / "new"));

  const auto nowhere = cli::check_writable("--json", folder / "none/new");
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().code == ErrorCode::bad_input);
  CHECK(contains(nowhere.error().message, "--json: cannot write '"));
  CHECK(contains(nowhere.error().message, "No such file"));
  const auto itself = cli::check_writable("--json", folder.str());
  REQUIRE_FALSE(itself);
  CHECK(contains(itself.error().message, "directory"));
}

TEST_CASE("another kind of file is not written over") {
  const TempFolder folder;
  for (const std::string text : {"old", "", "{", "{\"schema\": 1}", "SQLite format 3"}) {
    INFO(text);
    std::ofstream(folder / "file") << text;
    const auto may = cli::check_writable("--json", folder / "file", "{");
    CHECK(text_of(folder / "file") == text);
    CHECK(bool(may) == (text.empty() || text[0] == '{'));
    if (!may) CHECK(contains(may.error().message, "holds something else; it was left alone"));
  }
  CHECK(cli::check_writable("--json", folder / "new", "{"));

  // What a command reads, say, or another program's JSON.
  for (const std::string text : {"family: gemm\n", "{\"name\": \"package\"}\n"}) {
    std::ofstream(folder / "other") << text;
    const test::Ran ran = test::run({"devices", "--json", folder / "other"});
    CHECK(ran.code == 2);
    CHECK(ran.out.empty());
    CHECK(text_of(folder / "other") == text);
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(test::run({"devices", "--json", folder / "own"}).code == 0);
  }
}

TEST_CASE("what is to be replaced needs room for another file beside it") {
  const TempFolder folder;
  const std::filesystem::path longest = folder / std::string(255, 'x');
  std::ofstream(longest) << "old";
  CHECK(cli::check_writable("--output", longest));
  CHECK_FALSE(cli::check_replaceable("--output", longest));
  CHECK_FALSE(cli::replace("--output", longest, "new"));
  CHECK(text_of(longest) == "old");
  CHECK(cli::check_replaceable("--output", folder / "new"));
  CHECK(cli::check_replaceable("--output", "/dev/null"));
  CHECK_FALSE(cli::check_replaceable("--output", folder / "none/new"));
  CHECK_FALSE(cli::check_replaceable("--output", folder.str()));
  CHECK_FALSE(std::filesystem::exists(folder / "new"));
}

TEST_CASE("files are told apart however they are spelled") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "linked");
  std::ofstream(folder / "real/old") << "old";
  std::filesystem::create_symlink("real/old", folder / "link");
  std::filesystem::create_hard_link(folder / "real/old", folder / "twin");
  const auto apart = [](const std::string& a, const std::string& b) {
    return cli::check_apart({{"--output", a}, {"--json", b, true}});
  };
  for (const std::string name : {"real/old", "real/new"}) {
    const std::string file = folder / name;
    for (const std::string& same :
         {file, std::string(folder / ("./" + name)), std::string(folder / ("real/../" + name)),
          std::string(folder / ("linked" + name.substr(4))),
          std::filesystem::relative(file).string()}) {
      INFO(same);
      CHECK_FALSE(apart(file, same));
      CHECK_FALSE(apart(same, file));
    }
    CHECK(apart(file, folder / "real/other"));
    CHECK(apart(file, folder / "old"));
  }
  CHECK_FALSE(apart(folder / "link", folder / "real/old"));
  CHECK_FALSE(apart(folder / "twin", folder / "real/old"));
  CHECK_FALSE(apart(folder / "no/such/", folder / "no/such"));
  CHECK_FALSE(apart("new", "./new"));
  CHECK_FALSE(cli::check_apart({{"--cache", "a"}, {"--svg", "b"}, {"--json", "a"}}));
  // Not all have a stdout.
  CHECK_FALSE(apart("-", "new"));
  // Nothing is lost there.
  CHECK(apart("new", "-"));
  CHECK(apart("./-", "-"));
  CHECK(apart("", ""));
  CHECK(apart("/dev/null", "/dev/null"));

  const auto told = apart("new", "./new");
  CHECK(told.error().code == ErrorCode::bad_input);
  CHECK(told.error().message ==
        "--output 'new' and --json './new' are the same file; give each its own");
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

// Every kind of bad YAML through every option that reads one: exit code 2, the file and the line,
// what is accepted; soon, and without a crash.
#include <chrono>
#include <fstream>

#include "test/support/shell.h"
#include "test/unit/cache/fixture.h"

namespace autotune {
namespace {

using cache::testing::TempFolder;
using test::contains;
using test::Ran;
using test::shell;

struct Reader {
  const char* what;
  std::string before;   // two lines in front of its list of problems
  std::string after;    // what a problem has behind its dimensions
  std::string command;  // FILE follows
};

std::vector<Reader> readers() {
  const std::string problem = " --device nvidia-h200 -q ";
  return {
      {"suite", "family: gemm\nproblems:\n", "", "plan" + problem + "--suite "},
      {"tuned", "device: NVIDIA H200\nwinners:\n", ", config: mma, median_us: 1",
       "cache import --cache /dev/null "},
  };
}

// A row of the reader's list with `m` in the place of its dimension.
std::string row(const Reader& reader, const std::string& m) {
  const std::string family = reader.after.empty() ? "" : "family: gemm, ";
  return "  - {" + family + "m: " + m + ", n: 64, k: 64" + reader.after + "}\n";
}

struct Bad {
  const char* what;
  std::string text;
  std::vector<std::string> parts;  // of the message
};

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::vector<Bad> bad_texts(const Reader& reader) {
  const std::string& head = reader.before;
  const std::string good = row(reader, "64");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [{1}]\n", i, repeated(fmt::format("*a{}, ", i - 1), 9));
  }
  return {
      {"unknown key", head + good + "colour: red\n", {":4: unknown key 'colour'", "accepted: "}},
      {"wrong type", head + row(reader, "[[1]]"), {":3: m: "}},
      {"text for a number", head + row(reader, "many"), {":3: m: ", "decimal"}},
      {"duplicate key",
       head + good + head.substr(0, head.find('\n') + 1),
       {":4: duplicate key", "first on line 1"}},
      {"1e3 for an integer", head + row(reader, "1e3"), {":3: m: ", "1e3"}},
      {"octal", head + row(reader, "010"), {":3: m: ", "010"}},
      {"600 levels",
       head + "  - " + repeated("[", 600) + repeated("]", 600) + "\n",
       {":3: ", "nested deeper than 16 levels"}},
      {"alias bomb", bomb, {":1: anchors"}},
      {"zero", head + row(reader, "0"), {":3: m: ", "1 to 2147483647"}},
      {"negative", head + row(reader, "-64"), {":3: m: ", "1 to 2147483647"}},
      {"2^40", head + row(reader, "1099511627776"), {":3: m: ", "1 to 2147483647"}},
      {"not YAML", head + "  - {m: 64\n", {": not valid YAML"}},
      {"nothing", "", {":1: the file is empty"}},
  };
}

void check_refused(const std::string& command, const std::string& file,
                   const std::vector<std::string>& parts) {
  const auto start = std::chrono::steady_clock::now();
  const Ran ran = shell(command + file, "timeout 20");
  INFO(ran.err.substr(0, 400));
  CHECK(ran.code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err.starts_with("autotune: "));
  CHECK(contains(ran.err, file));
  for (const std::string& part : parts) {
    INFO(part);
    CHECK(contains(ran.err, part));
  }
  CHECK(ran.err.size() < 1000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
}

TEST_CASE("bad YAML is refused with file, line and what is accepted, whoever reads it") {
  const TempFolder folder;
  for (const Reader& reader : readers()) {
    for (const Bad& bad : bad_texts(reader)) {
      INFO(reader.what << ": " << bad.what);
      const std::string file = folder / "bad.yaml";
      std::ofstream(file, std::ios::binary) << bad.text;
      check_refused(reader.command, file, bad.parts);
    }
  }
}

TEST_CASE("spaces and GPUs that are bad YAML are refused likewise") {
  const TempFolder folder;
  const std::string problem = "plan gemm --m 64 --n 64 --k 64 ";
  const std::string file = folder / "bad.yaml";
  for (const std::string& command :
       {problem + "--device nvidia-h200 --space ", problem + "--gpu-spec "}) {
    for (const auto& [text, part] :
         {std::pair<std::string, std::string>{"colour: red\n", ":1: unknown key 'colour'"},
          {"family: gemm\nfamily: gemm\n", ":2: duplicate key 'family'"},
          {"- a\n- b\n", " must be a map (key: value), found a list"},
          {repeated("{a: ", 600) + repeated("}", 600), "nested deeper than 16 levels"},
          {"a: &x [1]\nb: *x\n", ":1: anchors"},
          {"a: !!binary aGk=\n", ":1: tags"},
          {std::string("a: \x01\n"), ":1: control character"},
          {"a: [1, 2\n", "not valid YAML"}}) {
      INFO(command << text.substr(0, 40));
      std::ofstream(file, std::ios::binary) << text;
      check_refused(command, file, {part});
    }
  }
}

TEST_CASE("what is no file to read, or too large, is refused by its name at once") {
  const TempFolder folder;
  const std::string large = folder / "large.yaml";
  std::ofstream(large) << "family: gemm\n";
  std::filesystem::resize_file(large, 100'000'000);
  const std::string problem = "plan gemm --m 64 --n 64 --k 64 ";
  for (const std::string& command :
       {std::string("plan --device nvidia-h200 --suite "),
        problem + "--device nvidia-h200 --space ", problem + "--gpu-spec ",
        std::string("cache import --cache /dev/null ")}) {
    INFO(command);
    check_refused(command, folder.path().string() + "/", {"is a directory"});
    check_refused(command, large, {"larger than 16 MiB"});
    check_refused(command, folder / "none.yaml", {"No such file"});
  }
}

}  // namespace
}  // namespace autotune

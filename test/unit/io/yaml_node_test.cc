// Files that are no sound YAML, or are made to hurt: each must be an error with its line, soon.
#include "autotune/io/yaml_node.h"

#include <fmt/format.h>

#include <chrono>

#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

std::string error_of(const std::string& text) {
  const auto node = parse_yaml(text, "f.yaml");
  REQUIRE(is_bad_input(node));
  return node.error().message;
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

TEST_CASE("a tree keeps what was written, with lines") {
  const auto root = parse_yaml("a: 010\nb: '7'\nc:\n  - [x, ~]\n  -\n", "f.yaml");
  REQUIRE(root);
  REQUIRE(root->kind == YamlNode::Kind::map);
  REQUIRE(root->keys.size() == 3);
  CHECK(root->items[0].text == "010");
  CHECK_FALSE(root->items[0].quoted);
  CHECK(root->items[1].quoted);
  CHECK(root->items[1].line == 2);
  const YamlNode& list = root->items[2];
  REQUIRE(list.kind == YamlNode::Kind::sequence);
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[0].line == 4);
  CHECK(list.items[0].items[0].text == "x");
  CHECK(list.items[0].items[1].kind == YamlNode::Kind::null);
  CHECK(list.items[1].kind == YamlNode::Kind::null);
}

TEST_CASE("broken YAML names its line") {
  CHECK_THAT(error_of("a: 1\nb: [1, 2\nc: 3\n"),
             Catch::Matchers::StartsWith("f.yaml:3: not valid"));
  CHECK_THAT(error_of("a: 1\n  b: 2\n"), Catch::Matchers::StartsWith("f.yaml:2: not valid"));
}

TEST_CASE("duplicate keys name both lines") {
  CHECK(error_of("a: 1\nb: 2\na: 3\n") ==
        "f.yaml:3: duplicate key 'a', first on line 1; keep one of them");
  CHECK_THAT(error_of("x:\n  - {m: 1, n: 2, 'm': 3}\n"), HasText("f.yaml:2: duplicate key 'm'"));
}

TEST_CASE("nesting of 600 levels is refused, in either style") {
  std::string block;
  for (int level = 0; level < 600; ++level) block += std::string(level, ' ') + "a:\n";
  CHECK_THAT(error_of(block), HasText("nested deeper than 16 levels"));
  CHECK_THAT(error_of(repeated("[", 600) + repeated("]", 600)),
             HasText("nested deeper than 16 levels"));
  CHECK_THAT(error_of(repeated("{a: ", 600) + repeated("}", 600)),
             HasText("nested deeper than 16 levels"));
}

TEST_CASE("an alias bomb is refused at its first anchor") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = fmt::format("*a{}", i - 1);
    bomb += fmt::format("a{0}: &a{0} [{1}{2}]\n", i, last, repeated(", " + last, 8));
  }
  CHECK(error_of(bomb) == "f.yaml:1: anchors (&name) are not accepted; write the value out");
  CHECK_THAT(error_of("a: *nowhere\n"), Catch::Matchers::StartsWith("f.yaml:1:"));
}

TEST_CASE("tags, odd keys, empty and second documents are refused") {
  CHECK_THAT(error_of("a: !!int 7\n"), HasText("tags"));
  CHECK_THAT(error_of("? [1, 2]\n: 3\n"), HasText("a key must be plain text"));
  CHECK(error_of("") == "f.yaml:1: the file is empty");
  CHECK(error_of("# only a comment\n") == "f.yaml:1: the file is empty");
  CHECK_THAT(error_of("a: 1\n---\nb: 2\n"), HasText("a second document"));
}

TEST_CASE("bytes that would end or stall the scanner are refused") {
  CHECK(error_of("a: 1\nb\x04: 2\n") == "f.yaml:2: control character 0x04; expected text in UTF-8");
  CHECK_THAT(error_of(std::string("a\0b: 1\n", 7)), HasText("0x00"));
  CHECK_THAT(error_of("a: 1\n" + repeated("[", 70'000)),
             HasText("f.yaml:2: line longer than 65536 bytes"));
}

TEST_CASE("a file of millions of values is refused, and soon") {
  const auto start = std::chrono::steady_clock::now();
  CHECK_THAT(error_of("a:\n" + repeated("- 1\n", 4'000'000)), HasText("more than 500000 values"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a long value is cut in a message") {
  CHECK(in_quotes("abc") == "'abc'");
  CHECK(in_quotes(std::string(100, 'x')) == "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace autotune::io

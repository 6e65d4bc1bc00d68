// Typed access: what counts as an integer, a number, a list, and which mistake is reported.
#include "autotune/io/yaml_map.h"

#include "kernels/problem.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const std::string kOrigin = "f.yaml";

// Reads `text` with `read` and returns what finish() says.
template <class Read>
std::string outcome(const std::string& text, Read read) {
  const auto root = parse_yaml(text, kOrigin);
  REQUIRE(root);
  YamlMap map(*root, kOrigin, "the file");
  read(map);
  return message_of(map.finish());
}

std::string integer_outcome(const std::string& value) {
  return outcome("x: " + value + "\n", [](YamlMap& map) { map.integer("x", 0, 100); });
}

TEST_CASE("an integer is plain decimal digits within its range") {
  CHECK(integer_outcome("0").empty());
  CHECK(integer_outcome("100").empty());
  CHECK(integer_outcome("1e3") ==
        "f.yaml:1: x: expected a decimal integer from 0 to 100, found '1e3'");
  CHECK(integer_outcome("010") ==
        "f.yaml:1: x: expected a decimal integer from 0 to 100, found '010', which may be read as "
        "octal");
  CHECK_THAT(integer_outcome("'7'"), Catch::Matchers::EndsWith("found the text '7'"));
  CHECK_THAT(integer_outcome("-1"), Catch::Matchers::EndsWith("found '-1'"));
  CHECK_THAT(integer_outcome("[1]"), Catch::Matchers::EndsWith("found a list"));
  CHECK_THAT(integer_outcome("{a: 1}"), Catch::Matchers::EndsWith("found a map"));
  CHECK_THAT(integer_outcome("{}"), Catch::Matchers::EndsWith("found an empty map"));
  CHECK_THAT(integer_outcome(""), Catch::Matchers::EndsWith("found nothing"));
  for (const char* value : {"0x10", "+5", "1_0", "1.0", "99999999999999999999", "seven", "-010"}) {
    INFO(value);
    CHECK_THAT(integer_outcome(value), HasText("expected a decimal integer"));
  }
}

TEST_CASE("a number is finite and decimal") {
  const auto number = [](const std::string& value) {
    return outcome("x: " + value + "\n", [](YamlMap& map) { map.number("x", 0, 10); });
  };
  for (const char* value : {"1.0e-4", "0", "10", "9.5"}) CHECK(number(value).empty());
  for (const char* value : {".inf", "nan", "inf", "0x1", "'1'", "10.5", "-1", "1.0x", "010"}) {
    INFO(value);
    CHECK_THAT(number(value), HasText("x: expected a number from 0 to 10"));
  }
}

TEST_CASE("the values themselves arrive") {
  const auto root = parse_yaml("a: -7\nb: 2.5\nc: [3, 4]\nd: text\ne: [x]\nf: 12\n", kOrigin);
  REQUIRE(root);
  YamlMap map(*root, kOrigin, "the file");
  CHECK(map.integer("a", -10, 10) == -7);
  CHECK(map.number("b", 0, 10) == 2.5);
  CHECK(map.integers("c", 0, 10) == std::vector<std::int64_t>{3, 4});
  CHECK(map.text("d") == "text");
  CHECK(map.names("e", {"x", "y"}) == std::vector<std::string>{"x"});
  CHECK(map.dimensions("f") == std::vector<std::int64_t>{12});
  CHECK_FALSE(map.has("g"));
  CHECK(map.finish());
}

TEST_CASE("dimensions outside 1 to 2^31-1 are refused with file and line") {
  const auto dimension = [](const std::string& value) {
    return outcome("m: " + value + "\n", [](YamlMap& map) { map.dimensions("m"); });
  };
  CHECK(dimension("2147483647").empty());
  CHECK(dimension("[1, 4, 16]").empty());
  // 2^31, 2^40, and 2^64 + 1.
  for (const char* value : {"0", "-1", "2147483648", "1099511627776", "18446744073709551617", "010",
                            "1e3", "'7'", "[4, 0]", "[]", "", "[[1]]"}) {
    INFO(value);
    CHECK_THAT(dimension(value), Catch::Matchers::StartsWith("f.yaml:1: m: "));
  }
}

TEST_CASE("a list that should not be empty is told from one that holds something wrong") {
  const auto integers = [](const std::string& value) {
    return outcome("x: " + value + "\n", [](YamlMap& map) { map.integers("x", 0, 9); });
  };
  CHECK(integers("[]") ==
        "f.yaml:1: x: expected a list with at least one item, found an empty list");
  CHECK(integers("[[1]]") == "f.yaml:1: x: expected a decimal integer from 0 to 9, found a list");
}

TEST_CASE("an unknown key comes before the missing one that it explains") {
  const auto read = [](YamlMap& map) {
    map.integer("count", 0, 9);
    map.has("other");
  };
  CHECK(outcome("cuont: 3\n", read) ==
        "f.yaml:1: unknown key 'cuont' in the file; accepted: count, other");
  CHECK(outcome("other: 3\n", read) == "f.yaml:1: the file lacks the key 'count'");
}

TEST_CASE("the first wrong value is the one reported") {
  const auto both = [](YamlMap& map) {
    map.integer("a", 0, 9);
    map.integer("b", 0, 9);
  };
  CHECK_THAT(outcome("b: x\na: y\n", both), Catch::Matchers::StartsWith("f.yaml:2: a:"));
}

TEST_CASE("a list of names holds known ones once") {
  const auto names = [](const std::string& value) {
    return outcome("x: " + value + "\n", [](YamlMap& map) { map.names("x", {"a", "b"}); });
  };
  CHECK(names("[]").empty());
  CHECK(names("[b, a]").empty());
  CHECK(names("[a, c]") == "f.yaml:1: x: expected some of a, b, found 'c'");
  CHECK(names("[a, a]") == "f.yaml:1: x: 'a' is there twice");
  CHECK(names("a") == "f.yaml:1: x: expected a list, found 'a'");
}

TEST_CASE("a choice lists what is accepted") {
  const auto choice = [](const std::string& value) {
    return outcome("x: " + value + "\n",
                   [](YamlMap& map) { map.choice("x", &parse_layout, accepted_layouts()); });
  };
  CHECK(choice("nt").empty());
  CHECK(choice("xx") == "f.yaml:1: x: expected " + accepted_layouts() + ", found 'xx'");
  CHECK_THAT(choice("[tn]"), HasText("expected text, found a list"));
}

TEST_CASE("what is not a map is refused") {
  CHECK(outcome("[1]\n", [](YamlMap&) {}) ==
        "f.yaml:1: the file must be a map (key: value), found a list");
}

}  // namespace
}  // namespace autotune::io

#include "kernels/config.h"

#include "kernels/kernel.h"
#include "test/support/catch.h"
#include "test/unit/kernels/fake_family.h"

namespace autotune {
namespace {

using testing::fake_family;

Config config_of(std::string_view text) {
  const auto config = parse_config(text, fake_family());
  REQUIRE(config);
  return *config;
}

std::string error_of(std::string_view text) {
  const auto config = parse_config(text, fake_family());
  REQUIRE_FALSE(config);
  CHECK(config.error().code == ErrorCode::bad_input);
  return config.error().message;
}

TEST_CASE("the canonical string names every parameter in the kernel's order") {
  CHECK(to_string(config_of("tiled:stages=3,tile=128")) == "tiled:tile=128,stages=3,swizzle=4");
  CHECK(to_string(config_of("plain")) == "plain:tile=32,unroll=1");
  CHECK(to_string(Config{}).empty());
}

TEST_CASE("reading the canonical string gives the config back") {
  const Config config = config_of("tiled:tile=256,stages=8,swizzle=16");
  CHECK(config_of(to_string(config)) == config);
}

TEST_CASE("omitted parameters come from a default config of the same kernel") {
  const Config defaults = config_of("tiled:tile=96,stages=5,swizzle=1");
  const auto same = parse_config("tiled:stages=6", fake_family(), &defaults);
  REQUIRE(same);
  CHECK(to_string(*same) == "tiled:tile=96,stages=6,swizzle=1");
  const auto other = parse_config("plain", fake_family(), &defaults);
  REQUIRE(other);
  CHECK(to_string(*other) == "plain:tile=32,unroll=1");
}

TEST_CASE("a value is found by its parameter's name") {
  const Config config = config_of("plain:unroll=0");
  CHECK(value_of(config, "unroll") == 0);
  CHECK(value_of(config, "stages") == -1);
  CHECK(value_of(Config{}, "tile") == -1);
}

TEST_CASE("what is wrong with a config string is said") {
  CHECK(error_of("simt:tile=8").find("it has tiled, plain") != std::string::npos);
  CHECK(error_of("tiled:depth=8").find("it has tile, stages, swizzle") != std::string::npos);
  CHECK(error_of("tiled:tile=8").find("16 to 256") != std::string::npos);
  CHECK(error_of("tiled:stages=2,stages=2").find("given twice") != std::string::npos);
}

TEST_CASE("a config string that is not one is refused") {
  const auto* text = GENERATE(
      "", ":", "tiled:", "tiled:tile", "tiled:=64", "tiled:tile=", "tiled:tile=064",
      "tiled:tile=+64", "tiled:tile=-64", "tiled:tile=64 ", " tiled", "tiled:tile=64,",
      "tiled:,tile=64", "tiled:tile=6e1", "tiled:tile=99999999999", "tiled:tile=64:stages=2", "*");
  CAPTURE(text);
  CHECK_FALSE(parse_config(text, fake_family()));
}

TEST_CASE("configs that differ only in run-time parameters are the same code") {
  const Config config = config_of("tiled:tile=64,swizzle=1");
  CHECK(code_of(config) == code_of(config_of("tiled:tile=64,swizzle=8")));
  CHECK_FALSE(code_of(config) == code_of(config_of("tiled:tile=128,swizzle=1")));
  CHECK_FALSE(code_of(config_of("plain")) == code_of(config_of("tiled")));
  CHECK(code_of(Config{}) == Config{});
}

bool pattern_matches(std::string_view pattern_text, std::string_view config_text) {
  const auto pattern = parse_pattern(pattern_text, fake_family());
  REQUIRE(pattern);
  CHECK(pattern->text == pattern_text);
  return matches(*pattern, config_of(config_text));
}

TEST_CASE("a pattern matches when kernel and every pair hold") {
  CHECK(pattern_matches("tiled", "tiled:tile=64"));
  CHECK_FALSE(pattern_matches("tiled", "plain"));
  CHECK(pattern_matches("*", "plain"));
  CHECK(pattern_matches("*:tile=64", "plain:tile=64"));
  CHECK(pattern_matches("*:tile=64", "tiled:tile=64"));
  CHECK_FALSE(pattern_matches("*:tile=64", "tiled:tile=128"));
  CHECK(pattern_matches("tiled:stages=2,tile=*", "tiled:tile=256,stages=2"));
  CHECK_FALSE(pattern_matches("tiled:stages=2,tile=*", "tiled:stages=3"));
  CHECK_FALSE(pattern_matches("*:stages=*", "plain"));
  CHECK_FALSE(matches(*parse_pattern("*", fake_family()), Config{}));
}

TEST_CASE("a pattern that could never match is refused") {
  const auto* text = GENERATE("", "simt", "tiled:depth=1", "*:depth=1", "tiled:tile=x",
                              "tiled:tile=64,tile=128", "tiled:tile=**", "tiled:*");
  CAPTURE(text);
  const auto pattern = parse_pattern(text, fake_family());
  REQUIRE_FALSE(pattern);
  CHECK(pattern.error().code == ErrorCode::bad_input);
}

}  // namespace
}  // namespace autotune

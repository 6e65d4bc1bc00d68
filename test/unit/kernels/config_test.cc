#include "kernels/config.h"

#include "kernels/kernel.h"
#include "kernels/stages.h"
#include "test/support/catch.h"
#include "test/unit/kernels/fake_family.h"

namespace autotune {
namespace {

using testing::fake_family;
using testing::staged_family;

Config config_of(std::string_view text, const Family& family = fake_family()) {
  const auto config = parse_config(text, family);
  REQUIRE(config);
  return *config;
}

std::string error_of(std::string_view text, const Family& family = fake_family()) {
  const auto config = parse_config(text, family);
  REQUIRE_FALSE(config);
  CHECK(config.error().code == ErrorCode::bad_input);
  return config.error().message;
}

std::string error_of_pattern(std::string_view text) {
  const auto pattern = parse_pattern(text, staged_family());
  REQUIRE_FALSE(pattern);
  return pattern.error().message;
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

TEST_CASE("a config of a family with stages is one for each of them") {
  const Config joined = config_of("tiled:stages=3 + plain:tile=8", staged_family());
  CHECK(to_string(joined) == "tiled:tile=64,stages=3,swizzle=4 + plain:tile=8,unroll=1");
  CHECK(config_of(to_string(joined), staged_family()) == joined);
  CHECK(stage_of(joined, 0) == config_of("tiled:stages=3"));
  CHECK(stage_of(joined, 1) == config_of("plain:tile=8"));
  CHECK(join(stage_of(joined, 0), stage_of(joined, 1)) == joined);
  CHECK(value_of(joined, "stages") == 3);
}

TEST_CASE("joined configs are equal where both of their parts are") {
  const Config tiled = config_of("tiled");
  const Config plain = config_of("plain");
  const Config joined = join(tiled, plain);
  CHECK(joined == join(tiled, plain));
  CHECK(ConfigHash{}(joined) == ConfigHash{}(join(tiled, plain)));
  const Config other = join(tiled, config_of("plain:unroll=2"));
  CHECK_FALSE(joined == other);
  CHECK(ConfigHash{}(joined) != ConfigHash{}(other));
  CHECK_FALSE(joined == join(config_of("tiled:stages=8"), plain));
  CHECK_FALSE(joined == tiled);
  CHECK(ConfigHash{}(joined) != ConfigHash{}(tiled));
}

TEST_CASE("each part of a joined config is completed by its own part of the defaults") {
  const Config defaults =
      config_of("tiled:tile=96,swizzle=1 + plain:tile=8,unroll=2", staged_family());
  const auto completed = [&](std::string_view text, const Config& by) {
    const auto config = parse_config(text, staged_family(), &by);
    REQUIRE(config);
    return to_string(*config);
  };
  CHECK(completed("tiled:stages=6 + plain:unroll=3", defaults) ==
        "tiled:tile=96,stages=6,swizzle=1 + plain:tile=8,unroll=3");
  CHECK(completed("tiled + tiled", defaults) ==
        "tiled:tile=96,stages=2,swizzle=1 + tiled:tile=64,stages=2,swizzle=4");
  CHECK(completed("tiled + plain", stage_of(defaults, 0)) ==
        "tiled:tile=96,stages=2,swizzle=1 + plain:tile=32,unroll=1");
}

TEST_CASE("what is wrong with a joined config is said") {
  for (const char* text : {"tiled", "", "plain:tile=8", "tiled+plain", "tiled + plain + plain"}) {
    CAPTURE(text);
    CHECK(error_of(text, staged_family()).find("give 'first config + fake config'") !=
          std::string::npos);
  }
  CHECK(error_of("plain + plain", staged_family()).find("family first has no kernel 'plain'") !=
        std::string::npos);
  CHECK(error_of("tiled + simt", staged_family()).find("family fake has no kernel 'simt'") !=
        std::string::npos);
  CHECK(error_of("tiled + plain:depth=1", staged_family()).find("it has tile, unroll") !=
        std::string::npos);
  CHECK(error_of("tiled:tile=8 + plain", staged_family()).find("16 to 256") != std::string::npos);
  for (const char* text : {" + plain", "tiled + ", "tiled +  plain", "tiled  + plain"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_config(text, staged_family()));
  }
}

TEST_CASE("a family of one stage takes no joined config") {
  CHECK_FALSE(parse_config("tiled + plain", fake_family()));
  CHECK_FALSE(parse_config("tiled:tile=64 + plain:tile=8", fake_family()));
}

TEST_CASE("a pattern of a family with stages names the kernels of any") {
  const auto pattern = parse_pattern("plain:unroll=2", staged_family());
  REQUIRE(pattern);
  const Config joined = config_of("tiled + plain:unroll=2", staged_family());
  CHECK(matches(*pattern, stage_of(joined, 1)));
  CHECK_FALSE(matches(*pattern, stage_of(joined, 0)));
  CHECK(matches(*parse_pattern("tiled", staged_family()), stage_of(joined, 0)));
  CHECK(error_of_pattern("simt").find("no kernel 'simt'") != std::string::npos);
  CHECK(error_of_pattern("tiled + plain").find("no kernel 'tiled + plain'") != std::string::npos);
}

}  // namespace
}  // namespace autotune

// A YAML file as a plain tree of what was written, with line numbers and without any guessing of
// types. The one place that calls yaml-cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"

namespace autotune::io {

struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool quoted = false;  // '7' is text, 7 is a number
  int line = 1;
  std::string text;             // of a scalar
  std::vector<YamlNode> keys;   // of a map: plain or quoted scalars, no two the same
  std::vector<YamlNode> items;  // of a sequence; of a map the values, in the order of keys
};

// What a file may hold before it is refused: protection against files that were made to exhaust
// memory or the stack, far above any that a person writes.
inline constexpr int kMaxYamlDepth = 16;
inline constexpr int kMaxYamlNodes = 500'000;
inline constexpr std::size_t kMaxYamlLine = 65'536;  // bytes; the scanner looks ahead for a line

// The single document in `text`. bad_input ("ORIGIN:LINE: ...") for what is not YAML, no or several
// documents, duplicate keys, keys that are not scalars, anchors, aliases and tags, control
// characters, and the limits above. Never throws.
Expected<YamlNode> parse_yaml(std::string_view text, const std::string& origin);

// bad_input with "ORIGIN:LINE: MESSAGE".
Error error_at(const std::string& origin, int line, std::string_view message);

// Text for a message: in single quotes, cut where long.
std::string in_quotes(std::string_view text);

}  // namespace autotune::io

// Strict typed access to one map of a YAML file. Reading goes on after a mistake with a harmless
// value, and finish() reports: an unknown key first (it explains a missing one), then the first
// wrong value, then a missing key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/io/yaml_node.h"

namespace autotune::io {

class YamlMap {
 public:
  // `what` names the map in messages ("a problem", "the file"). `node` and `origin` must outlive
  // it. A node that is not a map is an error of finish().
  YamlMap(const YamlNode& node, const std::string& origin, std::string_view what);

  // The value under a key; asking makes the key an accepted one. Null where absent.
  const YamlNode* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }
  // The same; finish() fails where it is absent.
  const YamlNode* require(std::string_view key);

  // Required values. An integer is decimal digits with an optional sign: 010, 1e3, 0x10 and '7' are
  // refused. A number is decimal, finite, with an optional exponent.
  std::string text(std::string_view key);
  std::int64_t integer(std::string_view key, std::int64_t lo, std::int64_t hi);
  double number(std::string_view key, double lo, double hi);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t lo, std::int64_t hi);
  // A list (which may be empty) of texts, each one of `accepted`, none twice.
  std::vector<std::string> names(std::string_view key, const std::vector<std::string>& accepted);
  // One dimension, or a list of them: parse_dimension() of kernels/problem.h.
  std::int64_t dimension(std::string_view key);
  std::vector<std::int64_t> dimensions(std::string_view key);
  // A text that `parse` understands; `accepted` lists what it does.
  template <class T>
  T choice(std::string_view key, std::optional<T> (*parse)(std::string_view),
           std::string_view accepted) {
    const std::string value = text(key);
    if (value.empty()) return T{};
    if (const std::optional<T> parsed = parse(value)) return *parsed;
    reject_value(key, accepted);
    return T{};
  }
  // Items of a required, non-empty sequence; empty after a mistake.
  const std::vector<YamlNode>& sequence(std::string_view key);

  void reject(int line, std::string_view message);
  Expected<void> finish() const;

  int line() const { return node_.line; }
  const std::string& origin() const { return origin_; }

 private:
  void reject_value(std::string_view key, std::string_view expected);
  std::int64_t integer_of(const YamlNode& node, std::string_view key, std::int64_t lo,
                          std::int64_t hi);
  std::int64_t dimension_of(const YamlNode& node, std::string_view key);

  const YamlNode& node_;
  const std::string& origin_;
  std::string what_;
  std::vector<std::string> accepted_;
  std::optional<Error> error_;
  std::optional<Error> missing_;
};

}  // namespace autotune::io

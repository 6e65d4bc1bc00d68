#include "autotune/io/yaml_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/problem.h"

namespace autotune::io {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Digits that another YAML reader would take as octal: the same file must not mean two numbers.
bool looks_octal(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return text.size() > 1 && text.front() == '0' && is_digits(text);
}

std::string found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::sequence:
      return node.items.empty() ? "an empty list" : "a list";
    case YamlNode::Kind::map:
      return node.items.empty() ? "an empty map" : "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  if (node.quoted) return "the text " + in_quotes(node.text);
  if (looks_octal(node.text)) return in_quotes(node.text) + ", which may be read as octal";
  return in_quotes(node.text);
}

std::optional<std::int64_t> decimal(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted) return std::nullopt;
  std::string_view digits = node.text;
  if (!digits.empty() && digits.front() == '-') digits.remove_prefix(1);
  if (!is_digits(digits) || looks_octal(node.text)) return std::nullopt;
  std::int64_t value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto result = std::from_chars(node.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

std::optional<double> finite_number(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted || looks_octal(node.text)) {
    return std::nullopt;
  }
  double value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto result = std::from_chars(node.text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

YamlMap::YamlMap(const YamlNode& node, const std::string& origin, std::string_view what)
    : node_(node), origin_(origin), what_(what) {
  if (node.kind != YamlNode::Kind::map) {
    reject(node.line, fmt::format("{} must be a map (key: value), found {}", what, found(node)));
  }
}

void YamlMap::reject(int line, std::string_view message) {
  if (!error_) error_ = error_at(origin_, line, message);
}

void YamlMap::reject_value(std::string_view key, std::string_view expected) {
  const YamlNode& node = *find(key);
  reject(node.line, fmt::format("{}: expected {}, found {}", key, expected, found(node)));
}

const YamlNode* YamlMap::find(std::string_view key) {
  if (std::find(accepted_.begin(), accepted_.end(), key) == accepted_.end()) {
    accepted_.emplace_back(key);
  }
  for (std::size_t i = 0; i < node_.keys.size(); ++i) {
    if (node_.keys[i].text == key) return &node_.items[i];
  }
  return nullptr;
}

const YamlNode* YamlMap::require(std::string_view key) {
  const YamlNode* node = find(key);
  if (node == nullptr && !missing_) {
    missing_ = error_at(origin_, node_.line, fmt::format("{} lacks the key '{}'", what_, key));
  }
  return node;
}

std::string YamlMap::text(std::string_view key) {
  const YamlNode* node = require(key);
  if (node == nullptr) return {};
  if (node->kind != YamlNode::Kind::scalar || node->text.empty()) {
    reject_value(key, "text");
    return {};
  }
  return node->text;
}

std::int64_t YamlMap::integer_of(const YamlNode& node, std::string_view key, std::int64_t lo,
                                 std::int64_t hi) {
  const std::optional<std::int64_t> value = decimal(node);
  if (value && *value >= lo && *value <= hi) return *value;
  reject(node.line, fmt::format("{}: expected a decimal integer from {} to {}, found {}", key, lo,
                                hi, found(node)));
  return lo;
}

std::int64_t YamlMap::integer(std::string_view key, std::int64_t lo, std::int64_t hi) {
  const YamlNode* node = require(key);
  return node == nullptr ? lo : integer_of(*node, key, lo, hi);
}

double YamlMap::number(std::string_view key, double lo, double hi) {
  const YamlNode* node = require(key);
  if (node == nullptr) return lo;
  const std::optional<double> value = finite_number(*node);
  if (value && *value >= lo && *value <= hi) return *value;
  reject_value(key, fmt::format("a number from {} to {}", lo, hi));
  return lo;
}

const std::vector<YamlNode>& YamlMap::sequence(std::string_view key) {
  static const std::vector<YamlNode> none;
  const YamlNode* node = require(key);
  if (node == nullptr) return none;
  if (node->kind != YamlNode::Kind::sequence || node->items.empty()) {
    reject_value(key, "a list with at least one item");
    return none;
  }
  return node->items;
}

std::vector<std::int64_t> YamlMap::integers(std::string_view key, std::int64_t lo,
                                            std::int64_t hi) {
  std::vector<std::int64_t> values;
  for (const YamlNode& item : sequence(key)) values.push_back(integer_of(item, key, lo, hi));
  return values;
}

std::vector<std::string> YamlMap::names(std::string_view key,
                                        const std::vector<std::string>& accepted) {
  std::vector<std::string> values;
  const YamlNode* node = require(key);
  if (node == nullptr) return values;
  if (node->kind != YamlNode::Kind::sequence) reject_value(key, "a list");
  for (const YamlNode& item : node->items) {
    const bool known = item.kind == YamlNode::Kind::scalar &&
                       std::find(accepted.begin(), accepted.end(), item.text) != accepted.end();
    if (!known) {
      reject(item.line, fmt::format("{}: expected some of {}, found {}", key,
                                    fmt::join(accepted, ", "), found(item)));
    } else if (std::find(values.begin(), values.end(), item.text) != values.end()) {
      reject(item.line, fmt::format("{}: {} is there twice", key, in_quotes(item.text)));
    } else {
      values.push_back(item.text);
    }
  }
  return values;
}

std::int64_t YamlMap::dimension_of(const YamlNode& node, std::string_view key) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted) {
    const Expected<std::int64_t> value = parse_dimension(key, node.text);
    if (value) return *value;
    reject(node.line, value.error().message);
  } else {
    reject(node.line,
           fmt::format("{}: expected a dimension in decimal, found {}", key, found(node)));
  }
  return 1;
}

std::int64_t YamlMap::dimension(std::string_view key) {
  const YamlNode* node = require(key);
  return node == nullptr ? 1 : dimension_of(*node, key);
}

std::vector<std::int64_t> YamlMap::dimensions(std::string_view key) {
  const YamlNode* node = require(key);
  if (node == nullptr) return {};
  if (node->kind != YamlNode::Kind::sequence) return {dimension_of(*node, key)};
  std::vector<std::int64_t> values;
  for (const YamlNode& item : sequence(key)) values.push_back(dimension_of(item, key));
  return values;
}

Expected<void> YamlMap::finish() const {
  for (const YamlNode& key : node_.keys) {
    if (std::find(accepted_.begin(), accepted_.end(), key.text) == accepted_.end()) {
      return tl::unexpected(
          error_at(origin_, key.line,
                   fmt::format("unknown key {} in {}; accepted: {}", in_quotes(key.text), what_,
                               fmt::join(accepted_, ", "))));
    }
  }
  if (error_) return tl::unexpected(*error_);
  if (missing_) return tl::unexpected(*missing_);
  return {};
}

}  // namespace autotune::io

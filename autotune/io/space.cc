#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "autotune/io/load.h"
#include "autotune/io/problem_fields.h"
#include "autotune/io/yaml_map.h"

namespace autotune::io {
namespace {

// Enumerating more takes minutes, and is a slip in a list of values rather than an intent.
constexpr std::int64_t kMaxCodes = 100'000'000;
constexpr std::int64_t kMaxOrders = 1000;  // of each code, by parameters known at run time

search::ParameterRange read_range(YamlMap& map, const Parameter& parameter) {
  search::ParameterRange range{std::string(parameter.name), {}};
  if (parameter.run_time && !map.has(parameter.name)) {
    range.values.push_back(parameter.fallback);
    return range;
  }
  for (const std::int64_t value : map.integers(parameter.name, parameter.lo, parameter.hi)) {
    range.values.push_back(static_cast<std::int32_t>(value));
  }
  std::vector<std::int32_t> sorted = range.values;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    map.reject(map.find(parameter.name)->line,
               fmt::format("{}: {} is there twice", parameter.name, *twice));
  }
  return range;
}

Expected<search::KernelSpace> read_kernel(const YamlNode& node, const std::string& origin,
                                          const HostTwin& kernel) {
  search::KernelSpace space{std::string(kernel.name()), {}};
  YamlMap map(node, origin, fmt::format("kernel {}", kernel.name()));
  for (const Parameter& parameter : kernel.parameters()) {
    space.parameters.push_back(read_range(map, parameter));
  }
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  std::int64_t codes = 1;
  std::int64_t orders = 1;
  for (std::size_t i = 0; i < space.parameters.size(); ++i) {
    (kernel.parameters()[i].run_time ? orders : codes) *=
        static_cast<std::int64_t>(space.parameters[i].values.size());
    if (codes > kMaxCodes || orders > kMaxOrders) {
      const std::string most = codes > kMaxCodes ? fmt::format("{} codes", kMaxCodes)
                                                 : fmt::format("{} orders of a code", kMaxOrders);
      return tl::unexpected(
          error_at(origin, node.line,
                   fmt::format("kernel {}: more than {}; give fewer values", kernel.name(), most)));
    }
  }
  return space;
}

// Whether two products of values of a kernel have a config in common.
bool overlap(const search::KernelSpace& a, const search::KernelSpace& b) {
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    const std::vector<std::int32_t>& of_a = a.parameters[i].values;
    const std::vector<std::int32_t>& of_b = b.parameters[i].values;
    const bool shared =
        std::find_first_of(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) != of_a.end();
    if (!shared) return false;
  }
  return true;
}

std::string kernel_names(const Family& family) {
  std::string names;
  for (const HostTwin* kernel : family.kernels) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kernel->name());
  }
  return names;
}

}  // namespace

Expected<search::Space> parse_space(std::string_view text, const std::string& origin) {
  const Expected<YamlNode> root = parse_yaml(text, origin);
  if (!root) return tl::unexpected(root.error());
  YamlMap map(*root, origin, "the space");
  const Family* family = read_family(map);
  const YamlNode* kernels = map.require("kernels");
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  if (kernels->kind != YamlNode::Kind::map || kernels->items.empty()) {
    return tl::unexpected(
        error_at(origin, kernels->line,
                 fmt::format("kernels: expected a map with some of {}", kernel_names(*family))));
  }

  search::Space space{std::string(family->name), {}, origin, false};
  for (std::size_t i = 0; i < kernels->keys.size(); ++i) {
    const YamlNode& name = kernels->keys[i];
    const HostTwin* kernel = find_kernel(*family, name.text);
    if (kernel == nullptr) {
      return tl::unexpected(
          error_at(origin, name.line,
                   fmt::format("{} is not a kernel of {}; known: {}", in_quotes(name.text),
                               family->name, kernel_names(*family))));
    }
    // One product of values, or a list of them.
    const YamlNode& node = kernels->items[i];
    const bool several = node.kind == YamlNode::Kind::sequence && !node.items.empty();
    for (const YamlNode& product : several ? std::span(node.items) : std::span(&node, 1)) {
      Expected<search::KernelSpace> range = read_kernel(product, origin, *kernel);
      if (!range) return tl::unexpected(range.error());
      for (const search::KernelSpace& other : space.kernels) {
        if (other.kernel == range->kernel && overlap(other, *range)) {
          return tl::unexpected(error_at(
              origin, product.line,
              fmt::format("kernel {}: some configs are in two of its products; give a parameter "
                          "values that the other does not have",
                          kernel->name())));
        }
      }
      space.kernels.push_back(*std::move(range));
    }
  }
  return space;
}

Expected<search::Space> load_space(const std::filesystem::path& file) {
  const Expected<std::string> text = read_file(file);
  if (!text) return tl::unexpected(text.error());
  return parse_space(*text, file.string());
}

}  // namespace autotune::io

#include <fmt/format.h>

#include <algorithm>

#include "autotune/io/load.h"
#include "autotune/io/problem_fields.h"
#include "autotune/io/yaml_map.h"

namespace autotune::io {
namespace {

Expected<TunedEntry> read_entry(const YamlNode& node, const std::string& origin) {
  YamlMap map(node, origin, "a winner");
  TunedEntry entry;
  const Family* family = read_family(map);
  const DimensionNames names = dimension_names(family != nullptr ? family->name : "");
  entry.problem.m = map.dimension(names.m);
  entry.problem.n = map.dimension(names.n);
  entry.problem.k = map.dimension(names.k);
  if (!read_fields(map, entry.problem)) {
    entry.problem.out_dtype = default_out_dtype(entry.problem.dtype);
  }
  const std::string config_text = map.text("config");
  entry.median_us = map.number("median_us", 1e-3, 1e12);
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());

  entry.problem.family = std::string(family->name);
  const Expected<Problem> problem = checked_at(map, entry.problem);
  if (!problem) return tl::unexpected(problem.error());
  entry.problem = *problem;
  const Expected<Config> config = parse_config(config_text, *family);
  if (!config) {
    return tl::unexpected(
        error_at(origin, map.find("config")->line, "config: " + config.error().message));
  }
  // In full: a file from before the kernel gained a parameter names its fallback from here on.
  entry.config = to_string(*config);
  return entry;
}

}  // namespace

Expected<TunedFile> parse_tuned(std::string_view text, const std::string& origin) {
  const Expected<YamlNode> root = parse_yaml(text, origin);
  if (!root) return tl::unexpected(root.error());
  YamlMap map(*root, origin, "the file");
  TunedFile file{map.text("device"), {}};
  const std::vector<YamlNode>& winners = map.sequence("winners");
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());

  std::vector<std::pair<std::string, int>> seen;  // problem key, line
  for (const YamlNode& node : winners) {
    Expected<TunedEntry> entry = read_entry(node, origin);
    if (!entry) return tl::unexpected(entry.error());
    seen.emplace_back(problem_key(entry->problem), node.line);
    file.entries.push_back(*std::move(entry));
  }
  std::sort(seen.begin(), seen.end());
  const auto twice = std::adjacent_find(
      seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != seen.end()) {
    return tl::unexpected(error_at(
        origin, (twice + 1)->second,
        fmt::format("a second winner for the problem of line {}; keep the faster", twice->second)));
  }
  return file;
}

}  // namespace autotune::io

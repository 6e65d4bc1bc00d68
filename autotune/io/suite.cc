#include <fmt/format.h>

#include <filesystem>

#include "autotune/io/load.h"
#include "autotune/io/problem_fields.h"
#include "autotune/io/yaml_map.h"
#include "kernels/problem.h"

namespace autotune::io {
namespace {

// Three lists of a thousand values would be a billion problems.
constexpr std::size_t kMaxProblems = 100'000;

// What holds for each problem of a file that does not say otherwise.
struct Defaults {
  Problem problem;
  bool has_out_dtype = false;
};

Expected<void> append_problems(const YamlNode& node, const std::string& origin,
                               const Defaults& defaults, std::vector<SuiteEntry>& entries) {
  YamlMap map(node, origin, "a problem");
  SuiteEntry entry{defaults.problem};
  const DimensionNames names = dimension_names(entry.problem.family);
  const auto m = map.dimensions(names.m);
  const auto n = map.dimensions(names.n);
  const auto k = map.dimensions(names.k);
  if (!read_fields(map, entry.problem) && !defaults.has_out_dtype) {
    entry.problem.out_dtype = default_out_dtype(entry.problem.dtype);
  }
  if (map.has("rtol")) entry.rtol = map.number("rtol", 0, 1);
  if (map.has("atol")) entry.atol = map.number("atol", 0, 1e30);
  if (const auto done = map.finish(); !done) return done;

  for (const std::int64_t each_m : m) {
    for (const std::int64_t each_n : n) {
      for (const std::int64_t each_k : k) {
        if (entries.size() >= kMaxProblems) {
          return tl::unexpected(
              error_at(origin, node.line, fmt::format("more than {} problems", kMaxProblems)));
        }
        entry.problem.m = each_m;
        entry.problem.n = each_n;
        entry.problem.k = each_k;
        const Expected<Problem> problem = checked_at(map, entry.problem);
        if (!problem) return tl::unexpected(problem.error());
        entries.push_back({*problem, entry.rtol, entry.atol});
      }
    }
  }
  return {};
}

}  // namespace

Expected<Suite> parse_suite(std::string_view text, const std::string& origin,
                            const SuiteOverrides& overrides) {
  const Expected<YamlNode> root = parse_yaml(text, origin);
  if (!root) return tl::unexpected(root.error());
  YamlMap map(*root, origin, "the suite");
  const Family* family = read_family(map);
  Defaults defaults;
  defaults.has_out_dtype = read_types(map, defaults.problem);
  const std::vector<YamlNode>& problems = map.sequence("problems");
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  if (overrides.dtype) defaults.problem.dtype = *overrides.dtype;
  if (overrides.layout) defaults.problem.layout = *overrides.layout;

  defaults.problem.family = std::string(family->name);
  Suite suite{std::filesystem::path(origin).stem().string(), defaults.problem.family, {}};
  for (const YamlNode& node : problems) {
    const auto done = append_problems(node, origin, defaults, suite.entries);
    if (!done) return tl::unexpected(done.error());
  }
  return suite;
}

}  // namespace autotune::io

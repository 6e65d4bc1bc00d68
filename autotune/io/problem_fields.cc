#include "autotune/io/problem_fields.h"

#include <fmt/format.h>

#include <limits>

#include "kernels/problem.h"

namespace autotune::io {

const Family* read_family(YamlMap& map) {
  const std::string name = map.text("family");
  if (name.empty()) return nullptr;
  const Family* family = find_family(name);
  if (family != nullptr) return family;
  std::string known;
  for (const Family* each : families()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each->name);
  }
  map.reject(map.find("family")->line,
             fmt::format("family: {} is not known; known: {}", in_quotes(name), known));
  return nullptr;
}

namespace {

std::optional<bool> parse_flag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

}  // namespace

bool read_types(YamlMap& map, Problem& problem) {
  if (map.has("dtype")) problem.dtype = map.choice("dtype", &parse_dtype, accepted_dtypes());
  if (map.has("layout")) problem.layout = map.choice("layout", &parse_layout, accepted_layouts());
  const bool has_out_dtype = map.has("out_dtype");
  if (has_out_dtype) {
    problem.out_dtype = map.choice("out_dtype", &parse_dtype, "bf16, fp16, fp32");
  }
  if (map.has("mode")) problem.mode = map.choice("mode", &parse_timing_mode, "cold, hot");
  if (map.has("exact_fp32"))
    problem.exact_fp32 = map.choice("exact_fp32", &parse_flag, "true, false");
  if (map.has("activation")) {
    problem.activation = map.choice("activation", &parse_activation, accepted_activations());
  }
  return has_out_dtype;
}

bool read_fields(YamlMap& map, Problem& problem) {
  constexpr double kLargest = std::numeric_limits<float>::max();  // as checked() has it
  const bool has_out_dtype = read_types(map, problem);
  if (map.has("alpha")) problem.alpha = map.number("alpha", -kLargest, kLargest);
  if (map.has("beta")) problem.beta = map.number("beta", -kLargest, kLargest);
  if (map.has("lda")) problem.lda = map.dimension("lda");
  if (map.has("ldb")) problem.ldb = map.dimension("ldb");
  if (map.has("ldc")) problem.ldc = map.dimension("ldc");
  return has_out_dtype;
}

Expected<Problem> checked_at(const YamlMap& map, const Problem& problem) {
  Expected<Problem> result = checked(problem);
  if (!result) return tl::unexpected(error_at(map.origin(), map.line(), result.error().message));
  return result;
}

}  // namespace autotune::io

#include "autotune/io/tuned_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernels/problem.h"

namespace autotune::io {
namespace {

std::string double_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

// What checked() would fill in where the file says nothing.
Problem with_defaults(const Problem& problem) {
  Problem plain;
  plain.family = problem.family;
  plain.m = problem.m;
  plain.n = problem.n;
  plain.k = problem.k;
  plain.dtype = problem.dtype;
  plain.layout = problem.layout;
  plain.out_dtype = default_out_dtype(problem.dtype);
  return checked(plain).value_or(plain);
}

std::string line_of(const TunedEntry& entry) {
  const Problem& problem = entry.problem;
  const Problem plain = with_defaults(problem);
  const DimensionNames names = dimension_names(problem.family);
  std::string text = fmt::format("  - {{family: {}, {}: {}, {}: {}, {}: {}, dtype: {}, layout: {}",
                                 problem.family, names.m, problem.m, names.n, problem.n, names.k,
                                 problem.k, to_string(problem.dtype), to_string(problem.layout));
  const auto add = [&text](std::string_view key, const auto& value, const auto& usual) {
    if (value != usual) text += fmt::format(", {}: {}", key, value);
  };
  add("out_dtype", to_string(problem.out_dtype), to_string(plain.out_dtype));
  add("lda", problem.lda, plain.lda);
  add("ldb", problem.ldb, plain.ldb);
  add("ldc", problem.ldc, plain.ldc);
  add("alpha", problem.alpha, plain.alpha);
  add("beta", problem.beta, plain.beta);
  add("mode", to_string(problem.mode), to_string(plain.mode));
  add("exact_fp32", problem.exact_fp32, plain.exact_fp32);
  add("activation", to_string(problem.activation), to_string(plain.activation));
  return text + fmt::format(", config: {}, median_us: {}}}\n", double_quoted(entry.config),
                            entry.median_us);
}

auto order(const TunedEntry& entry) {
  const Problem& problem = entry.problem;
  return std::make_tuple(problem.family, problem.m, problem.n, problem.k, problem_key(problem));
}

}  // namespace

std::string tuned_text(const TunedFile& file) {
  std::vector<TunedEntry> entries = file.entries;
  std::sort(entries.begin(), entries.end(),
            [](const TunedEntry& a, const TunedEntry& b) { return order(a) < order(b); });
  std::string text = fmt::format(
      "# Winners measured on this GPU: made by 'autotune cache export --yaml'.\n"
      "device: {}\n"
      "winners:\n",
      double_quoted(file.device));
  for (const TunedEntry& entry : entries) text += line_of(entry);
  return text;
}

}  // namespace autotune::io

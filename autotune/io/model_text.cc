#include "autotune/io/model_text.h"

#include <fmt/format.h>

#include <vector>

namespace autotune::io {
namespace {

// Each with its line feed.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// How many lines from `begin` on are of the section that begins there, or stand between such.
std::size_t section_lines(const std::vector<std::string_view>& lines, std::size_t begin) {
  std::size_t last = begin;
  for (std::size_t i = begin + 1; i < lines.size(); ++i) {
    const bool empty = lines[i].find_first_not_of(" \r\n") == std::string_view::npos;
    if (empty || lines[i].starts_with('#')) continue;
    if (!lines[i].starts_with(' ')) break;
    last = i;
  }
  return last - begin + 1;
}

}  // namespace

std::string model_text(const ModelCoefficients& model, std::string_view comment) {
  std::string text;
  for (const std::string_view line : lines_of(comment)) text += fmt::format("# {}", line);
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += "model:\n";
  for (const Coefficient& each : model_coefficients()) {
    text += fmt::format("  {}: {:.4g}\n", each.name, model.*each.member);
  }
  return text;
}

std::string with_model(std::string_view file, std::string_view section) {
  const std::vector<std::string_view> lines = lines_of(file);
  std::size_t begin = 0;
  while (begin < lines.size() && !lines[begin].starts_with("model:")) ++begin;
  std::size_t end = begin;
  if (begin < lines.size()) {
    end = begin + section_lines(lines, begin);
    while (begin > 0 && lines[begin - 1].starts_with('#')) --begin;
  }
  std::string text;
  for (std::size_t i = 0; i < begin; ++i) text += lines[i];
  if (!text.empty() && text.back() != '\n') text += '\n';
  if (begin == lines.size() && !text.empty()) text += '\n';
  text += section;
  for (std::size_t i = end; i < lines.size(); ++i) text += lines[i];
  return text;
}

}  // namespace autotune::io

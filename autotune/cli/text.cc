#include "autotune/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "kernels/problem.h"

namespace autotune::cli {
namespace {

// Four significant digits without an exponent, so that columns of times can be compared by eye.
std::string four_digits(double value) {
  int decimals = 3;
  for (double limit = 10; decimals > 0 && std::abs(value) >= limit; limit *= 10) --decimals;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string padded(const std::string& cell, std::size_t width, Table::Align align) {
  return align == Table::Align::left ? fmt::format("{:<{}}", cell, width)
                                     : fmt::format("{:>{}}", cell, width);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  assert(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::str() const {
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  const bool titled = std::any_of(titles.begin(), titles.end(),
                                  [](const std::string& title) { return !title.empty(); });

  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = titles[i].size();
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }

  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string joined;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      joined += "  ";
      joined += padded(cells[i], widths[i], columns_[i].align);
    }
    joined.erase(joined.find_last_not_of(' ') + 1);
    text += joined + "\n";
  };
  if (titled) line(titles);
  for (const auto& row : rows_) line(row);
  return text;
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

std::string percent(double value) { return fmt::format("{:.1f} %", value); }

std::string microseconds(double us) { return us > 0 ? four_digits(us) + " us" : "-"; }

std::string teraflops(double tflops) { return tflops > 0 ? four_digits(tflops) : "-"; }

std::string duration(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string gibibytes(std::int64_t bytes) {
  return fmt::format("{:.0f} GiB", static_cast<double>(bytes) / static_cast<double>(1LL << 30));
}

double tflops_of(double flops, double us) { return us > 0 ? flops / us * 1e-6 : 0; }

std::string titled(const Problem& problem) {
  const std::string text = describe(problem);
  return text.starts_with(problem.family) ? text : problem.family + " " + text;
}

std::string stage_label(const Problem& stage, std::size_t stages) {
  return stages > 1 ? titled(stage) + ": " : "";
}

std::string counted(std::int64_t number, std::string_view noun) {
  const bool hisses = noun.ends_with('s') || noun.ends_with("sh") || noun.ends_with("ch");
  const char* plural = hisses ? "es" : "s";
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : plural);
}

}  // namespace autotune::cli

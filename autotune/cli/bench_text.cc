#include "autotune/cli/bench_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "autotune/cli/text.h"
#include "kernels/problem.h"
#include "kernels/verdict.h"

namespace autotune::cli {
namespace {

std::string failure_text(const tune::BenchRow& row) {
  if (row.outcome == Outcome::ok) return "";
  std::string text(to_string(row.outcome));
  if (!row.log.empty()) text += ": " + row.log.substr(0, row.log.find('\n'));
  return text;
}

Table::Column left(const char* title) { return {title, Table::Align::left}; }

std::string speedup_text(const io::BenchRowJson& row) {
  if (!row.speedup) return "-";
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", *row.speedup, row.speedup_lo, row.speedup_hi);
}

// The time with its standard error, as "210.5 us +- 0.3 %".
std::string time_text(const io::BenchRowJson& row) {
  if (row.median_us <= 0) return "-";
  return fmt::format("{} +- {}", microseconds(row.median_us), percent(100 * row.median_rel_error));
}

Table table_of(const io::BenchJson& document, bool baseline) {
  std::vector<Table::Column> columns = {left("problem"), {"time"}, {"TFLOP/s"}, {"floor"}};
  if (baseline) {
    columns.insert(columns.end(), {left("baseline"), {"its time"}, {"speedup [95 %]"}});
  }
  columns.insert(columns.end(), {left("match"), left("config")});
  Table table(std::move(columns));
  for (const io::BenchRowJson& row : document.rows) {
    std::vector<std::string> cells = {describe(row.problem), time_text(row), teraflops(row.tflops),
                                      row.median_us > 0 ? percent(row.floor_percent) : "-"};
    if (baseline) {
      cells.push_back(row.baseline ? row.baseline->name : "-");
      cells.push_back(row.baseline ? microseconds(row.baseline->median_us) : "-");
      cells.push_back(speedup_text(row));
    }
    cells.push_back(row.match);
    cells.push_back(row.config + (row.config.empty() || row.error.empty() ? "" : "  ") + row.error);
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace

io::BenchRowJson bench_row(const tune::BenchRow& row, const std::string& match) {
  io::BenchRowJson json;
  json.problem = row.problem;
  json.config = to_string(row.config);
  json.match = match;
  json.error = failure_text(row);
  if (row.outcome != Outcome::ok) return json;
  json.median_us = row.measurement.median_us;
  json.median_rel_error = row.measurement.relative_error;
  json.tflops = tflops_of(flops(row.problem), json.median_us);
  json.floor_percent = row.floor_percent;
  json.floor_measured = row.floor_measured;
  json.rel_error = row.measurement.result_error;
  if (row.baseline) {
    json.baseline = {row.baseline->name, row.baseline->median_us, row.baseline->candidates};
    json.speedup = row.speedup;
    json.speedup_lo = row.speedup_lo;
    json.speedup_hi = row.speedup_hi;
  }
  return json;
}

void summarise(io::BenchJson& document) {
  double log_sum = 0;
  int count = 0;
  for (const io::BenchRowJson& row : document.rows) {
    if (!row.speedup || *row.speedup <= 0) continue;
    log_sum += std::log(*row.speedup);
    ++count;
    document.min_speedup = std::min(document.min_speedup.value_or(*row.speedup), *row.speedup);
  }
  if (count > 0) document.geomean_speedup = std::exp(log_sum / count);
}

std::string bench_text(const io::BenchJson& document) {
  const bool baseline =
      std::any_of(document.rows.begin(), document.rows.end(),
                  [](const io::BenchRowJson& row) { return row.baseline.has_value(); });
  std::string text = fmt::format("{} on {}\n{}", document.rows.front().problem.family,
                                 document.device, table_of(document, baseline).str());
  const bool measured = std::all_of(
      document.rows.begin(), document.rows.end(),
      [](const io::BenchRowJson& row) { return row.floor_measured || !row.error.empty(); });
  text += fmt::format("floor: the hardware's least time in percent of ours, by {}\n",
                      measured ? "this GPU's measured curves" : "datasheet numbers");
  if (document.geomean_speedup) {
    text += fmt::format("speedup: geometric mean {:.3f}, least {:.3f}\n", *document.geomean_speedup,
                        *document.min_speedup);
  }
  return text;
}

}  // namespace autotune::cli

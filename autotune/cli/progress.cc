#include "autotune/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "autotune/cli/text.h"
#include "kernels/problem.h"

namespace autotune::cli {
namespace {

constexpr int kBarWidth = 20;
constexpr double kLogEverySeconds = 10;

std::string bar(const tune::Progress& progress) {
  const double done = std::clamp(
      static_cast<double>(progress.measured) / static_cast<double>(progress.total), 0.0, 1.0);
  const int filled = static_cast<int>(done * kBarWidth);
  return fmt::format("[{:#<{}}{:-<{}}] ", "", filled, "", kBarWidth - filled);
}

std::string done_text(const tune::Progress& progress) {
  if (progress.total <= 0) return fmt::format("{} configs", progress.measured);
  return fmt::format("{}/{} configs", progress.measured, progress.total);
}

// What the line says, most important first.
std::vector<std::string> parts(const tune::Progress& progress, double flops) {
  std::vector<std::string> all = {done_text(progress)};
  if (progress.best_us > 0) {
    all.push_back(fmt::format("best {}, {} TFLOP/s", microseconds(progress.best_us),
                              teraflops(tflops_of(flops, progress.best_us))));
  }
  if (progress.failed > 0) all.push_back(fmt::format("{} failed", progress.failed));
  if (progress.left_s > 0) all.push_back(duration(progress.left_s) + " left");
  return all;
}

}  // namespace

std::string progress_line(const tune::Progress& progress, double flops, int columns) {
  const auto room = static_cast<std::size_t>(std::max(columns, 0));
  std::string line;
  for (const std::string& part : parts(progress, flops)) {
    const std::string with = line.empty() ? part : line + "  " + part;
    if (with.size() > room) break;
    line = with;
  }
  if (progress.total > 0) {
    const std::string with = bar(progress) + line;
    if (with.size() <= room) line = with;
  }
  return line;
}

void ProgressPrinter::planned(const search::Plan& plan) {
  finish();
  flops_ = flops(plan.problem);
  logged_best_us_ = 0;
  logged_at_s_ = 0;
  output_.text(fmt::format("{}: {} of {} can run\n", titled(plan.problem),
                           grouped(static_cast<std::int64_t>(plan.survivors.size())),
                           counted(plan.generated, "config")));
}

void ProgressPrinter::tried(const Trial& trial, const tune::Progress& progress) {
  if (output_.verbose()) {
    finish();
    output_.info(fmt::format("{} {} {}", to_string(trial.config), to_string(trial.outcome),
                             trial.outcome == Outcome::ok
                                 ? microseconds(trial.measurement.median_us)
                                 : trial.log.substr(0, trial.log.find('\n'))));
  }
  if (output_.quiet()) return;
  if (line_.room() > 0) {
    line_.draw(progress_line(progress, flops_, line_.room()));
  } else {
    log(progress);
  }
}

void ProgressPrinter::warning(const std::string& message) {
  finish();
  output_.warn(message);
}

// A log has a line for every better config, and one now and then.
void ProgressPrinter::log(const tune::Progress& progress) {
  const bool better =
      progress.best_us > 0 && (logged_best_us_ == 0 || progress.best_us < logged_best_us_);
  if (!better && progress.elapsed_s - logged_at_s_ < kLogEverySeconds) return;
  logged_best_us_ = progress.best_us;
  logged_at_s_ = progress.elapsed_s;
  output_.err() << fmt::format("  {}  {}\n", duration(progress.elapsed_s),
                               fmt::join(parts(progress, flops_), "  "))
                << std::flush;
}

}  // namespace autotune::cli

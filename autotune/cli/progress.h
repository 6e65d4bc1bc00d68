// A tuning run as it goes: one line that is redrawn on a terminal, a line now and then in a log.
#pragma once

#include <string>

#include "autotune/cli/output.h"
#include "autotune/cli/status_line.h"
#include "autotune/tune/tuner.h"

namespace autotune::cli {

// "[########------------] 123/400  best 210.5 us, 652.9 TFLOP/s  3 failed  1 min 05 s left", as
// much of it as `columns` hold; `flops` of the problem.
std::string progress_line(const tune::Progress& progress, double flops, int columns);

class ProgressPrinter : public tune::Observer {
 public:
  explicit ProgressPrinter(Output& output) : output_(output), line_(output) {}

  void planned(const search::Plan& plan) override;
  void tried(const Trial& trial, const tune::Progress& progress) override;
  void warning(const std::string& message) override;
  // Ends the redrawn line; to be called before anything else is printed.
  void finish() { line_.clear(); }

 private:
  void log(const tune::Progress& progress);

  Output& output_;
  StatusLine line_;
  double flops_ = 0;
  double logged_best_us_ = 0;
  double logged_at_s_ = 0;
};

}  // namespace autotune::cli

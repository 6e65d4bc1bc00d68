#include "autotune/cli/progress.h"

#include <sstream>

#include "test/support/catch.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using autotune::test::contains;

namespace {

constexpr double kFlops = 2.0 * 4096 * 4096 * 4096;

tune::Progress halfway() {
  tune::Progress progress;
  progress.measured = 100;
  progress.total = 200;
  progress.failed = 3;
  progress.best_us = 210.5;
  progress.elapsed_s = 20;
  progress.left_s = 65;
  return progress;
}

}  // namespace

TEST_CASE("the progress line says how far, how good, what failed and how long") {
  CHECK(cli::progress_line(halfway(), kFlops, 120) ==
        "[##########----------] 100/200 configs  best 210.5 us, 652.9 TFLOP/s  3 failed  "
        "1 min 05 s left");
}

TEST_CASE("a narrow terminal gets the most important parts, never more than fits") {
  for (int columns = 0; columns < 120; ++columns) {
    const std::string line = cli::progress_line(halfway(), kFlops, columns);
    CHECK(line.size() <= static_cast<std::size_t>(columns));
  }
  CHECK(cli::progress_line(halfway(), kFlops, 50) ==
        "100/200 configs  best 210.5 us, 652.9 TFLOP/s");
}

TEST_CASE("without a total there is a count and no bar") {
  tune::Progress progress;
  progress.measured = 7;
  CHECK(cli::progress_line(progress, kFlops, 80) == "7 configs");
}

TEST_CASE("a terminal's line is redrawn and cleared; a log gets whole lines when it matters") {
  std::ostringstream out;
  std::ostringstream err;
  Trial trial;
  SECTION("terminal") {
    cli::Output output({out, err, 80}, "", 0);
    cli::ProgressPrinter printer(output);
    printer.tried(trial, halfway());
    CHECK(contains(err.str(), "\r"));
    CHECK_FALSE(contains(err.str(), "\n"));
    printer.finish();
    CHECK(err.str().ends_with("\r\x1b[K"));
  }
  SECTION("log") {
    cli::Output output({out, err, 0}, "", 0);
    cli::ProgressPrinter printer(output);
    search::Plan plan;
    plan.problem.m = plan.problem.n = plan.problem.k = 4096;
    plan.generated = 400;
    printer.planned(plan);
    CHECK(out.str() == "gemm 4096x4096x4096 bf16 tn: 0 of 400 configs can run\n");
    tune::Progress progress = halfway();
    progress.elapsed_s = 1;
    printer.tried(trial, progress);
    printer.tried(trial, progress);
    CHECK(err.str() ==
          "  1.0 s  100/200 configs  best 210.5 us, 652.9 TFLOP/s  3 failed  1 min 05 s left\n");
    progress.elapsed_s = 12;
    printer.tried(trial, progress);
    CHECK(contains(err.str(), "\n  12.0 s"));
    progress.best_us = 200;
    printer.tried(trial, progress);
    CHECK(contains(err.str(), "best 200.0 us"));
    CHECK_FALSE(contains(err.str(), "\r"));
  }
  SECTION("quiet") {
    cli::Output output({out, err, 80}, "", -1);
    cli::ProgressPrinter printer(output);
    printer.tried(trial, halfway());
    CHECK(err.str().empty());
    CHECK(out.str().empty());
  }
}

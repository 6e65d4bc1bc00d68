// `autotune tune`: from problems to winners in the cache.
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/interrupt.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/progress.h"
#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "autotune/io/json.h"
#include "autotune/tune/tuner.h"
#include "kernels/problem.h"
#include "search/strategy.h"

namespace autotune::cli {
namespace {

// The options that steer how, not what.
Expected<void> fill_steering(const Options& options, tune::TuneOptions& tune) {
  if (!options.budget.empty()) {
    const auto budget = read_real("--budget", options.budget, 0.001);
    if (!budget) return tl::unexpected(budget.error());
    tune.budget_seconds = *budget;
  }
  if (!options.trials.empty()) {
    const auto trials =
        read_count("--trials", options.trials, 1, std::numeric_limits<std::int32_t>::max());
    if (!trials) return tl::unexpected(trials.error());
    tune.max_trials = static_cast<std::int64_t>(*trials);
  }
  if (!options.strategy.empty()) {
    const auto known = search::check_strategy(options.strategy);
    if (!known) return fail(ErrorCode::bad_input, "--strategy: " + known.error().message);
    tune.strategy = options.strategy;
  }
  if (!options.patience.empty()) {
    const auto patience =
        read_count("--patience", options.patience, 1, std::numeric_limits<std::int32_t>::max());
    if (!patience) return tl::unexpected(patience.error());
    tune.patience = *patience;
    const auto known = search::check_strategy(tune.strategy, tune.patience);
    if (!known) return fail(ErrorCode::bad_input, "--patience: " + known.error().message);
  }
  const auto jobs = read_jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  tune.jobs = *jobs;
  const auto seed = read_seed(options);
  if (!seed) return tl::unexpected(seed.error());
  tune.seed = *seed;
  if (options.resume && options.fresh) {
    return fail(ErrorCode::bad_input, "--resume and --fresh exclude each other; give one of them");
  }
  tune.fresh = options.fresh;
  tune.from_scratch = options.from_scratch;
  return {};
}

Expected<tune::TuneOptions> read_tune_options(const Options& options, const Family& family) {
  tune::TuneOptions tune;
  if (const auto done = fill_steering(options, tune); !done) return tl::unexpected(done.error());
  auto limits = read_limits(options, family);
  if (!limits) return tl::unexpected(limits.error());
  tune.limits = *std::move(limits);
  auto space = read_space(options, family);
  if (!space) return tl::unexpected(space.error());
  tune.space = *std::move(space);
  return tune;
}

io::TuneRowJson row_of(const tune::TuneResult& result) {
  io::TuneRowJson row;
  row.problem = result.problem;
  row.winner = to_string(result.winner.config);
  row.median_us = result.winner.measurement.median_us;
  row.tflops = tflops_of(flops(result.problem), row.median_us);
  row.trials = result.outcomes;
  for (const Trial& trial : result.failures) {
    row.failures.push_back({to_string(trial.config), std::string(to_string(trial.outcome)),
                            trial.log.substr(0, trial.log.find('\n'))});
  }
  row.seconds = result.seconds;
  row.match = result.match;
  row.default_us = result.default_us;
  row.lead_percent = result.lead_percent;
  row.tie = result.tie;
  row.crowned = result.crowned;
  row.cancelled = result.cancelled;
  row.reused = result.reused;
  row.compiled = result.compiled;
  return row;
}

// "41 ok, 3 spilled, 1 wrong_result".
std::string outcomes_text(const io::Counts& outcomes) {
  std::string text;
  for (const auto& [outcome, count] : outcomes) {
    if (count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), outcome);
  }
  return text;
}

// Of a run that was not stopped.
std::string why_not_stored(const tune::TuneOptions& options) {
  if (options.whole_space()) return "the cache could not be written";
  return "the search was limited by " + options.limited_by();
}

std::string result_text(const io::TuneRowJson& row, const tune::TuneOptions& options) {
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  const char* best = row.cancelled ? "best so far" : "winner";
  table.add({best, row.winner});
  table.add(
      {"time", fmt::format("{}, {} TFLOP/s", microseconds(row.median_us), teraflops(row.tflops))});
  if (row.default_us > 0 && row.median_us > 0) {
    table.add(
        {"default", fmt::format("{}, the {} is {:.2f} times as fast", microseconds(row.default_us),
                                best, row.default_us / row.median_us)});
  }
  if (row.tie) {
    table.add({"lead", "a tie with the second"});
  } else if (row.lead_percent > 0) {
    table.add({"lead", percent(row.lead_percent) + " over the second"});
  }
  table.add({"trials",
             fmt::format("{} in {}{}", outcomes_text(row.trials), duration(row.seconds),
                         row.reused > 0 ? fmt::format(" ({} from the cache)", row.reused) : "")});
  for (const io::FailureJson& failure : row.failures) {
    table.add({"failed", fmt::format("{}: {}{}{}", failure.config, failure.outcome,
                                     failure.what.empty() ? "" : ", ", failure.what)});
  }
  if (!row.crowned && !row.cancelled) {
    table.add({"cache", "not stored as the winner for this problem: " + why_not_stored(options)});
  }
  return table.str();
}

struct Session {
  tune::Tuner tuner;
  const tune::TuneOptions& options;
  cache::Store* store;
  Output& output;
  const std::atomic<bool>& stop;
};

// One problem. An error becomes the row's, so that the rest of a suite goes on; the first is kept
// for the exit code.
io::TuneRowJson tune_one(Session& session, const Problem& problem, std::optional<Error>& first) {
  ProgressPrinter printer(session.output);
  const auto result = session.tuner.tune(problem, session.store, printer, session.stop);
  printer.finish();
  if (result) {
    const io::TuneRowJson row = row_of(*result);
    session.output.result(session.output.quiet() ? row.winner + "\n"
                                                 : result_text(row, session.options));
    return row;
  }
  io::TuneRowJson row;
  row.problem = problem;
  row.error = result.error().message;
  row.cancelled = result.error().code == ErrorCode::cancelled;
  if (!first) {
    first = result.error();
  } else {
    session.output.warn(row.error);
  }
  return row;
}

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options, output, Ladder::taken);
  if (!request) return tl::unexpected(request.error());
  auto tune_options = read_tune_options(options, *request->family);
  if (!tune_options) return tl::unexpected(tune_options.error());
  const auto device = choose_device(options, Need::gpu);
  if (!device) return tl::unexpected(device.error());
  drop_idle_cap(tune_options->limits, device->spec);
  auto store = open_store(options, cache::Access::read_write, output);
  if (!store) return tl::unexpected(store.error());

  const Interrupt interrupt;
  auto tuner = tune::Tuner::create(device->spec, *device->index, *tune_options);
  if (!tuner) return tl::unexpected(tuner.error());
  Session session{*std::move(tuner), *tune_options, *store ? &**store : nullptr, output,
                  interrupt.flag()};

  io::TuneJson document{device->spec.name, {}, tune_options->limits.max_sms};
  std::optional<Error> first;
  for (const Problem& problem : request->problems) {
    document.rows.push_back(tune_one(session, problem, first));
    if (interrupt.flag()) break;
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  if (interrupt.flag()) return kExitInterrupted;
  if (first) return tl::unexpected(*std::move(first));
  return kExitDone;
}

}  // namespace

const Command kTuneCommand = {
    "tune",
    "Measure configs on a GPU and keep the winner in the cache",
    "  autotune tune gemm --m 4096 --n 4096 --k 4096\n"
    "  autotune tune --suite gemm --budget 30 --json result.json\n"
    "  autotune tune gemm --m 1..8192 --n 4096 --k 4096\n"
    "  autotune tune gemm --m 100 --n 1524 --k 512 --dtype fp32 --strategy exhaustive --fresh\n"
    "\n"
    "The winner of a search that --space, --max-smem, --max-sms or --exclude limits is not\n"
    "stored as the problem's: that is the winner of the whole space on the whole GPU.",
    kFamily | kSuite | kProblem | kDevice | kSpace | kMaxSms | kTune | kJobs | kSeed | kCache |
        kOutput,
    run,
};

}  // namespace autotune::cli

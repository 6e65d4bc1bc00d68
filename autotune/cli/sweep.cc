// `autotune sweep`: wide data, configs drawn beforehand and measured whatever comes of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/interrupt.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/request.h"
#include "autotune/cli/status_line.h"
#include "autotune/cli/target_file.h"
#include "autotune/cli/text.h"
#include "autotune/io/json.h"
#include "autotune/io/sweep.h"
#include "autotune/tune/sweep.h"
#include "kernels/problem.h"

namespace autotune::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostTrials = 300'000;  // some 12 MB of a file
constexpr std::uint64_t kMostPairs = 1000;
// A problem may take so many times its even share of what is left: the first of its types compiles
// for those that follow.
constexpr double kShare = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Wanted {
  tune::SweepOptions sweep;
  std::optional<double> budget;
  std::filesystem::path folder;
};

Expected<Wanted> read_wanted(const Options& options, const Family& family) {
  Wanted wanted;
  if (options.sweep.empty()) {
    return fail(ErrorCode::bad_input, "--output is missing: name the folder for the data");
  }
  wanted.folder = options.sweep;
  if (!options.budget.empty()) {
    const auto budget = read_real("--budget", options.budget, 0.001);
    if (!budget) return tl::unexpected(budget.error());
    wanted.budget = *budget;
  }
  if (!options.trials.empty()) {
    const auto trials = read_count("--trials", options.trials, 1, kMostTrials);
    if (!trials) return tl::unexpected(trials.error());
    wanted.sweep.trials = *trials;
  }
  if (!options.pairs.empty()) {
    const auto pairs = read_count("--pairs", options.pairs, 1, kMostPairs);
    if (!pairs) return tl::unexpected(pairs.error());
    wanted.sweep.pairs = static_cast<int>(*pairs);
  }
  const auto jobs = read_jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  wanted.sweep.jobs = *jobs;
  const auto seed = read_seed(options);
  if (!seed) return tl::unexpected(seed.error());
  wanted.sweep.seed = *seed;
  if (!family.stages.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("sweep measures single kernels: name {} or {} in place of {}",
                            family.stages[0]->name, family.stages[1]->name, family.name));
  }
  auto limits = read_limits(options, family);
  if (!limits) return tl::unexpected(limits.error());
  wanted.sweep.limits = *std::move(limits);
  auto space = read_space(options, family);
  if (!space) return tl::unexpected(space.error());
  wanted.sweep.space = *std::move(space);
  // The data names its space, wherever that lies today.
  wanted.sweep.space.origin = std::filesystem::path(wanted.sweep.space.origin).filename().string();
  return wanted;
}

// One problem's file, written row by row, so that what is known survives whatever happens.
class SweepFile {
 public:
  explicit SweepFile(std::filesystem::path path) : path_(std::move(path)) {}

  // What an earlier run wrote there; refused where it is of another problem or GPU.
  Expected<std::optional<io::Sweep>> before(const Problem& problem, const std::string& device,
                                            const std::string& space) const {
    std::error_code error;
    if (!std::filesystem::exists(path_, error)) return std::nullopt;
    auto sweep = io::load_sweep(path_);
    if (!sweep) return tl::unexpected(sweep.error());
    if (sweep->problem == problem && sweep->device == device && sweep->space == space) {
      return *std::move(sweep);
    }
    return fail(ErrorCode::bad_input,
                fmt::format("{} holds another problem, GPU or space; choose another folder",
                            path_.string()));
  }

  Expected<void> write(const io::Sweep& sweep, const io::SweepRow* row) {
    if (row == nullptr) {
      // The whole of it anew, for a row may have been cut off when the run before was ended. The
      // rows so far are of the runs before this one.
      io::Sweep earlier = sweep;
      earlier.runs.pop_back();
      const std::string text = text_.whole(earlier) + text_.run(sweep.runs.back());
      if (const auto done = replace("--output", path_.string(), text); !done) return done;
      out_.open(path_, std::ios::app);
    } else {
      out_ << text_.row(*row) << std::flush;
    }
    if (out_) return {};
    return fail(ErrorCode::io_failed, fmt::format("{}: cannot be written", path_.string()));
  }

 private:
  std::filesystem::path path_;
  std::ofstream out_;
  io::SweepText text_;
};

io::SweepRowJson summary(const io::Sweep& sweep) {
  io::SweepRowJson row;
  const io::SweepRow* best = nullptr;
  for (const io::SweepRow& each : sweep.rows) {
    ++row.trials[std::string(to_string(each.outcome))];
    const bool ok = each.outcome == Outcome::ok;
    if (ok && (best == nullptr || each.ratio < best->ratio)) best = &each;
  }
  if (best != nullptr) {
    row.best = to_string(best->config);
    row.best_us = best->ratio * sweep.reference_us();
  }
  return row;
}

std::string row_text(const io::SweepRowJson& row) {
  std::int64_t all = 0;
  std::int64_t failed = 0;
  for (const auto& [outcome, count] : row.trials) {
    all += count;
    if (outcome != to_string(Outcome::ok)) failed += count;
  }
  return fmt::format("{}: {} configs, {} failed, best {} in {}{}\n  {}\n", titled(row.problem),
                     grouped(all), grouped(failed), microseconds(row.best_us),
                     duration(row.seconds), row.complete ? "" : ", not complete", row.best);
}

// "mma:block_m=128,... ok 1.037 of the reference".
std::string trial_text(const io::SweepRow& row) {
  std::string text = fmt::format("{} {}", to_string(row.config), to_string(row.outcome));
  if (row.outcome == Outcome::ok) text += fmt::format(" {:.3f} of the reference", row.ratio);
  return text;
}

struct Sweeping {
  tune::Sweeper sweeper;
  const Wanted& wanted;
  const DeviceSpec& device;
  cache::Store* store;
  Output& output;
  const std::atomic<bool>& stop;
};

Expected<io::SweepRowJson> sweep_one(Sweeping& all, const Problem& problem,
                                     const tune::Sweeper::Deadline& deadline) {
  const Clock::time_point start = Clock::now();
  const std::filesystem::path path = all.wanted.folder / io::sweep_file_name(problem);
  SweepFile file(path);
  const auto before = file.before(problem, all.device.name, all.wanted.sweep.space.origin);
  if (!before) return tl::unexpected(before.error());
  StatusLine line(all.output);
  const auto complete = all.sweeper.sweep(
      problem, *before, all.store, deadline, all.stop,
      [&](const io::Sweep& sweep, const io::SweepRow* row, const tune::SweepProgress& progress) {
        if (row != nullptr && all.output.verbose()) {
          line.clear();
          all.output.info(trial_text(*row));
        }
        line.draw(fmt::format("{}  {}/{} configs  {} failed  best {:.3f} of the reference",
                              titled(problem), progress.done, progress.total, progress.failed,
                              progress.best));
        return file.write(sweep, row);
      });
  if (!complete) return tl::unexpected(complete.error());
  io::SweepRowJson result;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {  // not where time was over before anything was timed
    const auto known = io::load_sweep(path);
    if (!known) return tl::unexpected(known.error());
    result = summary(*known);
    result.file = path.string();
  }
  result.problem = problem;
  result.complete = *complete;
  result.seconds = seconds_since(start);
  return result;
}

Expected<int> run(const Options& options, Output& output) {
  const Clock::time_point start = Clock::now();
  const auto request = read_request(options, output);
  if (!request) return tl::unexpected(request.error());
  auto wanted = read_wanted(options, *request->family);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto device = choose_device(options, Need::gpu);
  if (!device) return tl::unexpected(device.error());
  drop_idle_cap(wanted->sweep.limits, device->spec);
  auto store = open_store(options, cache::Access::read_write, output);
  if (!store) return tl::unexpected(store.error());
  std::error_code error;
  std::filesystem::create_directories(wanted->folder, error);
  if (error) {
    return fail(ErrorCode::bad_input,
                fmt::format("--output: {}: {}", wanted->folder.string(), error.message()));
  }

  const Interrupt interrupt;
  auto sweeper = tune::Sweeper::create(device->spec, *device->index, wanted->sweep);
  if (!sweeper) return tl::unexpected(sweeper.error());
  Sweeping all{*std::move(sweeper),         *wanted, device->spec,
               *store ? &**store : nullptr, output,  interrupt.flag()};
  io::SweepJson document{device->spec.name, {}};
  std::optional<Error> first;
  for (std::size_t i = 0; i < request->problems.size() && !interrupt.flag(); ++i) {
    tune::Sweeper::Deadline deadline;
    if (wanted->budget) {
      const double left = *wanted->budget - seconds_since(start);
      const auto problems = static_cast<double>(request->problems.size() - i);
      if (left <= 0) {
        document.rows.emplace_back();
        document.rows.back().problem = request->problems[i];
        document.rows.back().error = "the budget was over before it was begun";
        output.warn(titled(request->problems[i]) + ": " + document.rows.back().error);
        continue;
      }
      deadline = Clock::now() +
                 std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(std::min(left, kShare * left / problems)));
    }
    auto row = sweep_one(all, request->problems[i], deadline);
    if (row) {
      output.result(row_text(*row));
      document.rows.push_back(*std::move(row));
      continue;
    }
    document.rows.emplace_back();
    document.rows.back().problem = request->problems[i];
    document.rows.back().error = row.error().message;
    if (!first) {
      first = row.error();
    } else {
      output.warn(row.error().message);
    }
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  if (interrupt.flag()) return kExitInterrupted;
  if (first) return tl::unexpected(*std::move(first));
  return kExitDone;
}

}  // namespace

const Command kSweepCommand = {
    "sweep",
    "Measure many configs that are drawn beforehand and keep every result as data",
    "  autotune sweep gemm --m 4096 --n 4096 --k 4096 --output data\n"
    "  autotune sweep --suite gemm_wide --space space.yaml --trials 1000 --budget 500 --output "
    "data",
    kFamily | kSuite | kProblem | kDevice | kSpace | kSweep | kJobs | kSeed | kCache | kOutput,
    run,
};

}  // namespace autotune::cli

// `autotune bench`: the known winners (or one config) timed, alone or against cuBLAS, another
// config or another cache's winners.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/bench_baseline.h"
#include "autotune/cli/bench_text.h"
#include "autotune/cli/command.h"
#include "autotune/cli/config_choice.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/interrupt.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/request.h"
#include "autotune/cli/status_line.h"
#include "autotune/io/builtin.h"
#include "autotune/lookup/answer.h"
#include "autotune/tune/bench.h"

namespace autotune::cli {
namespace {

constexpr double kMostSustained = 3600;

// The configs to time and where each comes from ("exact", ..., "given"); the problems without one,
// by their place in the request.
struct Choice {
  std::vector<tune::BenchItem> items;
  std::vector<std::string> matches;
  std::vector<std::pair<std::size_t, Error>> failed;
};

Expected<tune::BenchOptions> read_bench_options(const Options& options,
                                                const BenchBaseline& baseline) {
  tune::BenchOptions bench;
  bench.baseline = baseline.cublas;
  if (!options.sustain.empty()) {
    const auto seconds = read_real("--sustain", options.sustain, 0.001);
    if (!seconds) return tl::unexpected(seconds.error());
    if (*seconds > kMostSustained) {
      return fail(ErrorCode::bad_input, fmt::format("--sustain: {} is more than {} seconds",
                                                    options.sustain, kMostSustained));
    }
    if (!baseline.any()) {
      return fail(ErrorCode::bad_input,
                  "--sustain compares with a baseline: add --baseline cublas");
    }
    bench.sustain_s = *seconds;
  }
  const auto jobs = read_jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  bench.jobs = *jobs;
  const auto seed = read_seed(options);
  if (!seed) return tl::unexpected(seed.error());
  bench.seed = *seed;
  return bench;
}

// A config and where it comes from.
using Chosen = std::pair<Config, std::string>;

Expected<Chosen> choose_given(const std::string& text, const Problem& problem,
                              const DeviceSpec& device, const lookup::Bounds& bounds) {
  const auto config = choose_for("--config", text, problem, device, bounds);
  if (!config) return tl::unexpected(config.error());
  return Chosen{*config, "given"};
}

Expected<Chosen> choose_known(const lookup::Sources& sources, const Problem& problem,
                              const DeviceSpec& device, const lookup::Bounds& bounds) {
  const auto best = lookup::answer(problem, device, sources, bounds);
  if (!best) return tl::unexpected(best.error());
  const auto config = parse_config(best->config, *find_family(problem.family));
  if (!config) return tl::unexpected(config.error());
  return Chosen{*config, to_string(best->match)};
}

Choice choose(const std::string& text, const lookup::Sources& sources,
              const std::vector<Problem>& problems, const DeviceSpec& device,
              const lookup::Bounds& bounds) {
  Choice choice;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    auto chosen = text.empty() ? choose_known(sources, problems[i], device, bounds)
                               : choose_given(text, problems[i], device, bounds);
    if (!chosen) {
      choice.failed.emplace_back(i, std::move(chosen.error()));
      continue;
    }
    choice.items.push_back({problems[i], std::move(chosen->first)});
    choice.matches.push_back(std::move(chosen->second));
  }
  return choice;
}

// The rows of the problems without a config, each where it was asked for; what is not the first
// error is warned of.
void add_failed(const Choice& choice, const std::vector<Problem>& problems, Output& output,
                std::vector<io::BenchRowJson>& rows) {
  for (const auto& [place, error] : choice.failed) {
    io::BenchRowJson row;
    row.problem = problems[place];
    row.error = error.message;
    const auto at = static_cast<std::ptrdiff_t>(std::min(place, rows.size()));
    rows.insert(rows.begin() + at, std::move(row));
    if (&error != &choice.failed.front().second) output.warn(error.message);
  }
}

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options, output, Ladder::taken);
  if (!request) return tl::unexpected(request.error());
  const auto baseline = read_bench_baseline(options, *request->family);
  if (!baseline) return tl::unexpected(baseline.error());
  auto bench_options = read_bench_options(options, *baseline);
  if (!bench_options) return tl::unexpected(bench_options.error());
  auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  if (!options.config.empty()) {
    if (options.left_out) {
      return fail(ErrorCode::bad_input, "--left-out is for answers: leave --config out");
    }
    // A slip in it is told before a GPU is asked for.
    const auto config = choose_config("--config", options.config, *request->family, nullptr);
    if (!config) return tl::unexpected(config.error());
  }
  const auto device = choose_device(options, Need::gpu);
  if (!device) return tl::unexpected(device.error());
  drop_idle_cap(*limits, device->spec);
  bench_options->limits = *limits;
  const lookup::Bounds bounds{&*space, *std::move(limits)};
  auto opened = open_store(options, cache::Access::read_write, output);
  if (!opened) return tl::unexpected(opened.error());
  cache::Store* store = *opened ? &**opened : nullptr;
  lookup::Sources sources{store, io::tuned_entries()};
  sources.left_out = options.left_out;
  Choice choice = choose(options.config, sources, request->problems, device->spec, bounds);
  const auto added =
      add_baselines(*baseline, *request->family, device->spec, bounds, output, choice.items);
  if (!added) return tl::unexpected(added.error());

  const Interrupt interrupt;
  StatusLine line(output);
  io::BenchJson document{
      device->spec.name, {}, std::nullopt, std::nullopt, bench_options->limits.max_sms};
  const auto rows = tune::bench(
      choice.items, device->spec, *device->index, *bench_options, store,
      [&](const tune::BenchRow& row) {
        document.rows.push_back(bench_row(row, choice.matches[document.rows.size()]));
        line.draw(fmt::format("timed {}/{}", document.rows.size(), choice.items.size()));
      },
      interrupt.flag());
  line.clear();

  add_failed(choice, request->problems, output, document.rows);
  summarise(document);
  if (!document.rows.empty()) output.result(bench_text(document));
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  if (!rows) return tl::unexpected(rows.error());
  if (!choice.failed.empty()) return tl::unexpected(choice.failed.front().second);
  for (const io::BenchRowJson& row : document.rows) {
    if (!row.error.empty()) return kExitFailed;
  }
  return kExitDone;
}

}  // namespace

const Command kBenchCommand = {
    "bench",
    "Time the known winners of problems, alone or against cuBLAS or other configs",
    "  autotune bench gemm --m 4096 --n 4096 --k 4096 --baseline cublas\n"
    "  autotune bench --suite gemm --baseline cublas --json bench.json\n"
    "  autotune bench gemm --m 8192 --n 8192 --k 8192 --baseline cublas --sustain 2\n"
    "  autotune bench --suite gemm --baseline cublas --left-out\n"
    "  autotune bench gemm --m 4096 --n 4096 --k 4096 --config mma:block_m=128,block_n=256\n"
    "  autotune bench gemm --m 4096 --n 4096 --k 4096 --baseline mma:block_m=128,block_n=256\n"
    "  autotune bench --suite gemm --baseline before.db",
    kFamily | kSuite | kProblem | kConfig | kDevice | kSpace | kMaxSms | kJobs | kSeed | kBench |
        kLeftOut | kCache | kOutput,
    run,
};

}  // namespace autotune::cli

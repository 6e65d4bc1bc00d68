// `autotune replay`: search strategies on data that was measured before, without a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/curve_svg.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/request.h"
#include "autotune/cli/target_file.h"
#include "autotune/cli/text.h"
#include "autotune/io/json.h"
#include "autotune/io/sweep.h"
#include "autotune/tune/observations.h"
#include "search/fit.h"
#include "search/replay.h"

namespace autotune::cli {
namespace {

constexpr std::uint64_t kMost = 1'000'000;
constexpr std::size_t kStops[] = {8, 16, 24, 48};  // configs at which the table looks
constexpr std::size_t kNearAfter = 24;             // and at which it counts the problems

struct Wanted {
  std::vector<std::string> strategies;
  std::uint64_t first_seed = 0;
  std::uint64_t last_seed = 19;
  std::size_t batch = 8;
  std::size_t most = 200;
};

Expected<void> read_seeds(const std::string& text, Wanted& wanted) {
  const std::size_t dots = text.find("..");
  const auto first = read_count("--seeds", text.substr(0, dots), 0, kMost);
  if (!first) return tl::unexpected(first.error());
  const auto last =
      dots == std::string::npos ? first : read_count("--seeds", text.substr(dots + 2), 0, kMost);
  if (!last) return tl::unexpected(last.error());
  if (*first > *last) {
    return fail(ErrorCode::bad_input,
                fmt::format("--seeds: {} is an empty range; the smaller number comes first", text));
  }
  wanted.first_seed = *first;
  wanted.last_seed = *last;
  return {};
}

Expected<void> read_strategies(const std::string& text, Wanted& wanted) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const auto known = search::check_strategy(name);
    if (!known) return fail(ErrorCode::bad_input, "--strategy: " + known.error().message);
    auto& all = wanted.strategies;
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      return fail(ErrorCode::bad_input, fmt::format("--strategy: '{}' is named twice", name));
    }
    all.push_back(name);
    begin = end + 1;
  }
  return {};
}

Expected<Wanted> read_wanted(const Options& options) {
  Wanted wanted;
  if (options.data.empty()) {
    return fail(ErrorCode::bad_input, "--data is missing: name what 'autotune sweep' wrote");
  }
  auto done = read_strategies(options.strategy.empty() ? "model" : options.strategy, wanted);
  if (done && !options.seeds.empty()) done = read_seeds(options.seeds, wanted);
  if (!done) return tl::unexpected(done.error());
  for (const auto& [flag, text, value] : {std::tuple("--batch", &options.batch, &wanted.batch),
                                          std::tuple("--trials", &options.trials, &wanted.most)}) {
    if (text->empty()) continue;
    const auto count = read_count(flag, *text, 1, kMost);
    if (!count) return tl::unexpected(count.error());
    *value = *count;
  }
  return wanted;
}

Expected<search::Recording> recording_of(const io::Sweep& sweep, const DeviceSpec& device) {
  std::vector<search::Recorded> recorded;
  const double reference_us = sweep.reference_us();
  for (const io::SweepRow& row : sweep.rows) {
    recorded.push_back({row.config, row.outcome, row.ratio * reference_us});
  }
  return search::make_recording(sweep.problem, device, {}, recorded);
}

// The device of a sweep; with --fit-others, its model fitted to what the other sweeps measured.
Expected<DeviceSpec> device_of(const Options& options, const std::vector<io::Sweep>& sweeps,
                               const std::vector<std::filesystem::path>& files, std::size_t index) {
  Options of_sweep = options;
  const bool of_file = options.device.empty() && options.gpu_spec.empty();
  if (of_file) of_sweep.device = sweeps[index].device;
  auto device = choose_device(of_sweep, Need::description);
  if (!device && of_file) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: unknown GPU '{}'; --gpu-spec FILE describes one",
                            files[index].string(), sweeps[index].device));
  }
  if (!device) return tl::unexpected(device.error());
  if (device->spec.name != sweeps[index].device) {
    return fail(
        ErrorCode::bad_input,
        fmt::format("the data of {} was measured on {}, not on {}: leave --device out",
                    describe(sweeps[index].problem), sweeps[index].device, device->spec.name));
  }
  if (!options.fit_others) return std::move(device->spec);
  std::vector<search::MeasuredConfig> others;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    if (i == index || sweeps[i].device != sweeps[index].device) continue;
    const auto rows = tune::observations_of(sweeps[i]);
    others.insert(others.end(), rows.begin(), rows.end());
  }
  if (others.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("--fit-others: the data has no other problem of {} to fit to",
                            sweeps[index].device));
  }
  const auto model = search::FitData(others, device->spec).fit();
  if (!model) return fail(model.error().code, "--fit-others: " + model.error().message);
  device->spec.model = *model;
  return std::move(device->spec);
}

Expected<search::CurveBand> replay_all(const std::string& strategy, const Wanted& wanted,
                                       const search::Recording& recording) {
  std::vector<search::Curve> curves;
  for (std::uint64_t seed = wanted.first_seed; seed <= wanted.last_seed; ++seed) {
    auto made = search::make_strategy(strategy, recording.plan, {seed});
    if (!made) return tl::unexpected(made.error());
    curves.push_back(search::replay(**made, recording, wanted.batch, wanted.most));
  }
  return search::band_of(curves);
}

double at(const search::Curve& curve, std::size_t configs) {
  return curve.empty() ? INFINITY : curve[std::min(configs, curve.size()) - 1];
}

// The geometric mean of some curves, and their largest, after each number of configs.
NamedCurves over_problems(const std::string& strategy, const std::vector<io::ReplayRowJson>& rows) {
  std::size_t length = 0;
  for (const io::ReplayRowJson& row : rows) {
    if (row.strategy == strategy) length = std::max(length, row.median.size());
  }
  NamedCurves all{strategy, {}, {}};
  for (std::size_t n = 1; n <= length; ++n) {
    double logs = 0;
    double worst = 0;
    int count = 0;
    for (const io::ReplayRowJson& row : rows) {
      if (row.strategy != strategy) continue;
      logs += std::log(at(row.median, n));
      worst = std::max(worst, at(row.median, n));
      ++count;
    }
    all.middle.push_back(std::exp(logs / count));
    all.worst.push_back(worst);
  }
  return all;
}

std::string behind(double ratio) {
  return std::isfinite(ratio) ? fmt::format("{:.2f}", 100 * (ratio - 1)) : "-";
}

std::string count_or_never(std::int64_t configs) {
  return configs > 0 ? std::to_string(configs) : "-";
}

// What the median and (in brackets) the worst seed lack after so many configs; nothing is known
// beyond the `most` that were replayed.
std::string after(std::size_t configs, std::size_t most, const search::Curve& median,
                  const search::Curve& worst) {
  if (configs > most) return "-";
  return fmt::format("{} ({})", behind(at(median, configs)), behind(at(worst, configs)));
}

// Percent behind the best of the data: of the default config, then after some configs.
std::string table_text(const std::vector<io::ReplayRowJson>& rows,
                       const std::vector<NamedCurves>& all, std::size_t most) {
  std::vector<Table::Column> columns = {{"problem", Table::Align::left},
                                        {"strategy", Table::Align::left},
                                        {"configs"},
                                        {"best"},
                                        {"default"}};
  for (const std::size_t stop : kStops) columns.push_back({fmt::format("after {}", stop)});
  for (const char* title : {"to 1 %", "to 3 %", "in all"}) columns.push_back({title});
  Table table(columns);
  for (const io::ReplayRowJson& row : rows) {
    std::vector<std::string> cells = {titled(row.problem), row.strategy, grouped(row.configs),
                                      microseconds(row.best_us),
                                      row.default_ratio > 0 ? behind(row.default_ratio) : "failed"};
    for (const std::size_t stop : kStops) {
      cells.push_back(after(stop, most, row.median, row.worst));
    }
    cells.push_back(count_or_never(row.within_1));
    cells.push_back(count_or_never(row.within_3));
    cells.push_back(std::to_string(row.median.size()));
    table.add(std::move(cells));
  }
  for (const NamedCurves& each : all) {
    double logs = 0;
    int count = 0;
    int defaults = 0;  // that ran
    std::int64_t good = 0;
    for (const io::ReplayRowJson& row : rows) {
      if (row.strategy != each.name) continue;
      if (row.default_ratio > 0) {
        logs += std::log(row.default_ratio);
        ++defaults;
      }
      ++count;
      good += at(row.median, kNearAfter) <= 1.01 ? 1 : 0;
    }
    std::vector<std::string> cells = {fmt::format("{} problems, geometric mean", count), each.name,
                                      "", "",
                                      defaults > 0 ? behind(std::exp(logs / defaults)) : "failed"};
    for (const std::size_t stop : kStops) {
      cells.push_back(after(stop, most, each.middle, each.worst));
    }
    cells.push_back(most < kNearAfter ? "-" : fmt::format("{}/{}", good, count));
    cells.insert(cells.end(), {"", ""});
    table.add(std::move(cells));
  }
  return "Percent behind the best of the data, of the median seed (of the worst); to 1 %: configs "
         "until that near,\nin the last lines the problems that are so near after 24\n\n" +
         table.str();
}

Expected<int> run(const Options& options, Output& output) {
  const auto wanted = read_wanted(options);
  if (!wanted) return tl::unexpected(wanted.error());
  if (!options.svg.empty()) {
    if (const auto may = check_writable("--svg", options.svg, "<"); !may) {
      return tl::unexpected(may.error());
    }
  }
  const auto files = io::sweep_files(options.data);
  if (!files) return tl::unexpected(files.error());
  const auto sweeps = io::load_sweeps(options.data);
  if (!sweeps) return tl::unexpected(sweeps.error());

  io::ReplayJson document;
  for (std::size_t i = 0; i < sweeps->size(); ++i) {
    const io::Sweep& sweep = (*sweeps)[i];
    const auto device = device_of(options, *sweeps, *files, i);
    if (!device) return tl::unexpected(device.error());
    const auto recording = recording_of(sweep, *device);
    if (!recording) return tl::unexpected(recording.error());
    for (const std::string& strategy : wanted->strategies) {
      const auto band = replay_all(strategy, *wanted, *recording);
      if (!band) return tl::unexpected(band.error());
      io::ReplayRowJson& row = document.rows.emplace_back();
      row.problem = sweep.problem;
      row.device = device->name;
      row.strategy = strategy;
      row.configs = static_cast<std::int64_t>(sweep.rows.size());
      row.best_us = recording->best_us;
      row.default_ratio = recording->results.front().median_us / recording->best_us;
      row.median = band->median;
      row.worst = band->worst;
      row.within_1 = static_cast<std::int64_t>(search::configs_until(band->median, 0.01));
      row.within_3 = static_cast<std::int64_t>(search::configs_until(band->median, 0.03));
    }
  }
  std::vector<NamedCurves> all;
  for (const std::string& strategy : wanted->strategies) {
    all.push_back(over_problems(strategy, document.rows));
  }
  output.result(table_text(document.rows, all, wanted->most));
  if (!options.svg.empty()) {
    const auto drawn = write_over(
        "--svg", options.svg,
        curve_svg("Behind the best of the data: geometric mean over problems; dashed: worst", all));
    if (!drawn) return tl::unexpected(drawn.error());
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

}  // namespace

const Command kReplayCommand = {
    "replay",
    "Run search strategies on measured data, without a GPU",
    "  autotune replay --data test/data/wide --fit-others\n"
    "  autotune replay --data test/data/wide --strategy model,random,evolution --svg curves.svg",
    kReplay | kDevice | kOutput,
    run,
};

}  // namespace autotune::cli

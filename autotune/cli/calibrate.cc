// `autotune calibrate`: the performance model's coefficients from what a GPU measured.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/target_file.h"
#include "autotune/cli/text.h"
#include "autotune/io/json.h"
#include "autotune/io/load.h"
#include "autotune/io/model_text.h"
#include "autotune/io/sweep.h"
#include "autotune/tune/observations.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "search/fit.h"

namespace autotune::cli {
namespace {

// Fewer of a problem say little about the order of its configs.
constexpr std::int64_t kFewTrials = 20;

struct Data {
  std::vector<search::MeasuredConfig> fitted;
  std::vector<search::MeasuredConfig> excluded;
  std::int64_t mlps = 0;  // trials that are neither
};

// What is named, folders by the files in them, each file once however often: a trial counts once.
Expected<std::vector<std::string>> files_of(const std::vector<std::string>& named) {
  std::vector<std::string> files;
  for (const std::string& path : named) {
    std::error_code ignored;
    std::vector<std::filesystem::path> found = {path};
    if (std::filesystem::is_directory(path, ignored)) {
      auto sweeps = io::sweep_files(path);
      if (!sweeps) return tl::unexpected(sweeps.error());
      found = *std::move(sweeps);
    }
    for (const std::filesystem::path& file : found) {
      const auto again = [&](const std::string& other) { return same_file(other, file.string()); };
      if (std::none_of(files.begin(), files.end(), again)) files.push_back(file.string());
    }
  }
  return files;
}

Expected<Data> read_data(const Options& options, const DeviceSpec& device) {
  if (options.calibration_data.empty()) {
    return fail(ErrorCode::bad_input,
                "--data is missing: name a cache, what 'autotune sweep' wrote, or results of "
                "'autotune tune --json'");
  }
  const auto files = files_of(options.calibration_data);
  if (!files) return tl::unexpected(files.error());
  Data data;
  for (const std::string& path : *files) {
    // Results are JSON as well.
    if (auto apart = check_apart({{"--data", path}, {"--json", options.json, true}}); !apart) {
      return tl::unexpected(apart.error());
    }
    auto read = tune::read_observations(path, device);
    if (!read) return tl::unexpected(read.error());
    data.mlps += read->mlps;
    for (search::MeasuredConfig& each : read->trials) {
      const std::string key = problem_key(each.problem);
      const bool excluded =
          std::any_of(options.excluded_problems.begin(), options.excluded_problems.end(),
                      [&](const std::string& text) { return cache::names_problem(text, key); });
      (excluded ? data.excluded : data.fitted).push_back(std::move(each));
    }
  }
  if (!options.excluded_problems.empty() && data.excluded.empty()) {
    return fail(ErrorCode::bad_input,
                "--exclude-problem names no problem of the data; give whole words of a problem's "
                "key, e.g. 'm=4096 n=4096'");
  }
  if (!data.excluded.empty() && data.fitted.empty()) {
    return fail(ErrorCode::bad_input,
                "--exclude-problem excludes all problems of the data: nothing is left to fit to");
  }
  if (data.mlps > 0 && data.fitted.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("nothing to fit the performance model to: the data has {} of MLPs "
                            "alone, and the model is of single kernels; give trials of gemm or "
                            "geglu",
                            counted(data.mlps, "trial")));
  }
  return data;
}

io::ModelErrorJson row_of(const std::string& of, const search::ModelError& error) {
  return {of, error.trials, error.median, error.p90, error.first_choice};
}

Expected<io::CalibrateJson> calibrate(const Data& data, const DeviceSpec& device) {
  const search::FitData fitted(data.fitted, device);
  const auto model = fitted.fit();
  if (!model) return tl::unexpected(model.error());
  io::CalibrateJson result;
  result.device = device.name;
  result.problems = static_cast<std::int64_t>(fitted.problems());
  result.trials = static_cast<std::int64_t>(fitted.trials());
  result.read = static_cast<std::int64_t>(data.fitted.size());
  result.model = *model;
  const auto add_errors = [&](const search::FitData& of, const std::string& what) {
    result.errors.push_back(row_of("defaults" + what, of.error_of({})));
    if (device.model != ModelCoefficients{}) {
      result.errors.push_back(row_of("before this fit" + what, of.error_of(device.model)));
    }
    result.errors.push_back(row_of("fitted" + what, of.error_of(*model)));
  };
  add_errors(fitted, "");
  if (const auto left_out = fitted.left_out_error(*model)) {
    result.errors.push_back(row_of("fitted, each problem left out", *left_out));
  }
  const search::FitData excluded(data.excluded, device);
  if (excluded.trials() > 0) add_errors(excluded, ", excluded problems");
  return result;
}

// What was read and not fitted to.
std::string left_out_text(const io::CalibrateJson& result, std::int64_t mlps) {
  std::string text;
  if (result.trials != result.read) {
    text = fmt::format(
        ", of {} read: what can run there, and of many of one problem some, evenly from the "
        "fastest to the slowest",
        grouped(result.read));
  }
  if (mlps > 0) {
    text += fmt::format("; {} of MLPs left out, for the model is of single kernels",
                        counted(mlps, "trial"));
  }
  return text;
}

std::string errors_text(const io::CalibrateJson& result, std::int64_t mlps) {
  using enum Table::Align;
  Table table({{"|predicted / measured - 1|", left},
               {"trials"},
               {"median"},
               {"90 %"},
               {"first choice loses"}});
  for (const io::ModelErrorJson& row : result.errors) {
    table.add({row.of, grouped(row.trials), percent(100 * row.median), percent(100 * row.p90),
               percent(100 * (row.first_choice - 1))});
  }
  return fmt::format("{}: fitted to {} of {}{}\n{}", result.device, counted(result.trials, "trial"),
                     counted(result.problems, "problem"), left_out_text(result, mlps), table.str());
}

std::string section_of(const io::CalibrateJson& result) {
  std::string comment =
      fmt::format("Fitted by 'autotune calibrate' to {} of {}.\n|predicted / measured - 1|:",
                  counted(result.trials, "trial"), counted(result.problems, "problem"));
  for (const io::ModelErrorJson& row : result.errors) {
    comment += fmt::format("\n  {}: median {}, 90 % within {}", row.of, percent(100 * row.median),
                           percent(100 * row.p90));
  }
  return io::model_text(result.model, comment + "\n");
}

// What is in the file that the section is written to; refused where that describes no GPU, or
// another one, for a slip of the name would destroy it. A file of an earlier section alone is as
// good as none.
Expected<std::string> read_target(const std::string& file, const DeviceSpec& fitted) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return "";
  auto text = io::read_file(file);
  if (!text) return text;
  const bool other = io::with_model(*text, "").find_first_not_of(" \r\n") != std::string::npos;
  const auto device = io::load_gpu(file);
  if (device && device->name != fitted.name) {
    return fail(ErrorCode::bad_input,
                fmt::format("--output: '{}' describes the {}, not the {}; it was left alone", file,
                            device->name, fitted.name));
  }
  if (!other || device) return text;
  return fail(ErrorCode::bad_input,
              fmt::format("--output: '{}' exists and describes no GPU; it was left alone: {}", file,
                          device.error().message));
}

// Whether the section could be written, to be known before the fit.
Expected<void> check_target(const std::string& file, const DeviceSpec& fitted) {
  if (file.empty()) return {};
  if (const auto may = check_replaceable("--output", file); !may) return may;
  const auto text = read_target(file, fitted);
  return text ? Expected<void>() : tl::unexpected(text.error());
}

// A file that is there keeps everything but its model section.
Expected<void> write_section(const std::string& file, const DeviceSpec& fitted,
                             const std::string& section) {
  const auto before = read_target(file, fitted);
  if (!before) return tl::unexpected(before.error());
  return replace("--output", file, io::with_model(*before, section));
}

Expected<int> run(const Options& options, Output& output) {
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());
  if (const auto may = check_target(options.calibration, device->spec); !may) {
    return tl::unexpected(may.error());
  }
  const auto data = read_data(options, device->spec);
  if (!data) return tl::unexpected(data.error());
  const auto result = calibrate(*data, device->spec);
  if (!result) return tl::unexpected(result.error());

  output.text(errors_text(*result, data->mlps));
  if (result->trials < kFewTrials * result->problems) {
    output.warn(fmt::format(
        "{} of {}: that tells how long winners take, hardly which configs win; 'autotune sweep' "
        "measures enough of both",
        counted(result->trials, "trial"), counted(result->problems, "problem")));
  }
  if (options.calibration.empty()) {
    output.result(section_of(*result));
  } else if (auto written = write_section(options.calibration, device->spec, section_of(*result));
             !written) {
    return tl::unexpected(written.error());
  } else {
    output.result(fmt::format("{}: model section written\n", options.calibration));
  }
  if (const auto done = output.json(*result); !done) return tl::unexpected(done.error());
  return kExitDone;
}

}  // namespace

const Command kCalibrateCommand = {
    "calibrate",
    "Fit the performance model to what a GPU measured; needs no GPU",
    "  autotune calibrate --device nvidia-h200 --data sweeps/\n"
    "  autotune calibrate --device nvidia-h200 --data cache.db --data tune.json \\\n"
    "    --exclude-problem 'm=4096 n=4096'\n"
    "  autotune calibrate --gpu-spec my-gpu.yaml --data cache.db -o my-gpu.yaml",
    kDevice | kCalibrate | kOutput,
    run,
};

}  // namespace autotune::cli

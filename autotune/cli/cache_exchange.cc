#include "autotune/cli/cache_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/target_file.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/json.h"
#include "autotune/io/load.h"
#include "autotune/io/tuned_text.h"
#include "autotune/lookup/guess.h"
#include "kernels/kernel.h"
#include "kernels/sha256.h"
#include "kernels/stages.h"

namespace autotune::cli {
namespace {

namespace fs = std::filesystem;

// In place of a compiler's version where a winner came as YAML, which carries no code.
constexpr const char* kImported = "imported";

Expected<void> tell(const cache::Merged& done, const cache::Store& store,
                    const std::vector<std::string>& files, const std::string& verb, Output& output,
                    std::vector<io::LeftOutJson> left_out = {}) {
  output.result(fmt::format("{}: {} {}, {}, {}, {} new or better\n", store.path().string(), verb,
                            counted(done.runs, "run"), counted(done.trials, "trial"),
                            counted(done.winners, "winner"), counted(done.cubins, "cubin")));
  return output.json(io::CacheMergeJson{store.path().string(), files, done.runs, done.trials,
                                        done.winners, done.cubins, std::move(left_out)});
}

// Whether today's kernels would compile to the code that was measured.
bool is_current(const cache::TrialRecord& trial, const DeviceSpec& device) {
  return has_source_hash(trial.key.config, trial.problem, device, trial.key.source_hash);
}

bool is_known_as_current(const cache::TrialRecord& trial) {
  const DeviceSpec* device = io::find_fingerprint(trial.key.device_fingerprint);
  return device != nullptr && is_current(trial, *device);
}

// What can stand in configs/tuned, by GPU name; warns of what cannot, and puts stale winners into
// `left_out`.
std::map<std::string, io::TunedFile> exportable(const std::vector<cache::WinnerRecord>& winners,
                                                std::vector<io::StaleWinnerJson>& left_out,
                                                Output& output) {
  std::map<std::string, io::TunedFile> files;
  std::set<std::string> unknown;
  for (const cache::WinnerRecord& winner : winners) {
    const cache::TrialRecord& trial = winner.trial;
    const std::string& print = trial.key.device_fingerprint;
    const DeviceSpec* device = io::find_fingerprint(print);
    if (device == nullptr) {
      unknown.insert(print);
    } else if (!is_current(trial, *device)) {
      output.warn(fmt::format(
          "{} on {}: not exported, for the kernels have changed since (tune it again): {}",
          describe(trial.problem), device->name, trial.key.config));
      left_out.push_back({device->name, trial.problem, trial.key.config});
    } else {
      io::TunedFile& file = files[device->name];
      file.device = device->name;
      file.entries.push_back({trial.problem, trial.key.config, trial.measurement.median_us});
    }
  }
  for (const std::string& print : unknown) {
    output.warn(fmt::format("not exported, for configs/gpus does not describe it: {}", print));
  }
  return files;
}

// Another kind of file that a slip of the name would destroy.
Expected<void> check_export(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::file_size(path, ignored) == 0) return {};
  const auto text = io::read_file(path);
  if (text && io::parse_tuned(*text, path.string())) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("--yaml: '{}' exists and holds no exported winners; it was left alone: "
                          "remove it, or give another name",
                          path.string()));
}

Expected<void> write_whole(const fs::path& path, const std::string& text) {
  if (const auto may = check_export(path); !may) return may;
  if (const auto may = check_replaceable("--yaml", path.string()); !may) return may;
  return replace("--yaml", path.string(), text);
}

std::string names_of(const std::map<std::string, io::TunedFile>& files) {
  std::vector<std::string> names;
  for (const auto& [name, file] : files) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// A file's winners as those of one run on its GPU, but for configs that cannot run there.
struct Import {
  std::string uid;
  cache::RunInfo info;
  std::vector<cache::WinnerRecord> winners;
  std::vector<io::LeftOutJson> left_out;
};

Expected<Import> read_import(const std::string& file, Output& output) {
  const auto text = io::read_file(file);
  if (!text) return tl::unexpected(text.error());
  const auto tuned = io::parse_tuned(*text, file);
  if (!tuned) return tl::unexpected(tuned.error());
  const DeviceSpec* device = io::find_device(tuned->device);
  if (device == nullptr) {
    return fail(ErrorCode::bad_input, fmt::format("{}: device: '{}' is not a known GPU; see "
                                                  "'autotune devices'",
                                                  file, tuned->device));
  }
  Import import;
  import.info = {fingerprint(*device),
                 device->name,
                 kImported,
                 "",
                 AUTOTUNE_VERSION,
                 io::import_options(file),
                 ""};
  import.uid = sha256_hex(import.info.options + *text);
  for (const io::TunedEntry& entry : tuned->entries) {
    const auto config =
        lookup::usable(entry.config, entry.problem, *device, {}, lookup::Where::here);
    if (!config) {
      output.warn(
          fmt::format("{}: {}: left out, for this version has no such config that runs "
                      "there ('autotune explain' says why): {}",
                      file, describe(entry.problem), entry.config));
      import.left_out.push_back({file, entry.problem, entry.config});
      continue;
    }
    cache::TrialRecord trial;
    trial.problem = entry.problem;
    trial.key = {problem_key(entry.problem), fingerprint(*device), entry.config,
                 source_hash(*config, entry.problem, *device), kImported};
    trial.predicted = resources_of(*config, entry.problem, *device, 0);
    trial.measurement.median_us = entry.median_us;
    import.winners.push_back({std::move(trial)});
  }
  return import;
}

}  // namespace

Expected<cache::Store> open_subject(const Options& options, cache::Access access, Output& output) {
  const auto path = cache_path(options);
  if (!path) return tl::unexpected(path.error());
  if (access == cache::Access::read_only) warn_of_missing(options, output);
  auto store = cache::Store::open(*path, access);
  if (store && !store->message().empty()) output.warn(store->message());
  return store;
}

Expected<cache::Store> open_writable(const Options& options, Output& output) {
  auto store = open_subject(options, cache::Access::read_write, output);
  if (!store || store->writable()) return store;
  return fail(ErrorCode::io_failed, fmt::format("cache {}: {} cannot be written", options.action,
                                                store->path().string()));
}

Expected<std::vector<cache::WinnerRecord>> winners_like(const cache::Store& store,
                                                        const std::string& pattern,
                                                        const std::string& device) {
  std::vector<cache::WinnerRecord> found;
  bool known = device.empty() || io::find_device(device) != nullptr;
  for (const Family* family : families()) {
    auto winners = store.winners(std::string(family->name), "");
    if (!winners) return tl::unexpected(winners.error());
    for (cache::WinnerRecord& winner : *winners) {
      if (!cache::names_device(device, winner.trial.key.device_fingerprint)) continue;
      known = true;
      if (!cache::names_problem(pattern, winner.trial.key.problem_key)) continue;
      found.push_back(std::move(winner));
    }
  }
  if (!known) {
    return fail(ErrorCode::bad_input,
                fmt::format("--device: '{}' is not a known GPU; see 'autotune devices'", device));
  }
  return found;
}

// One of an older version is brought up to date, for else nothing of it would be merged.
Expected<cache::Store> open_source(const std::string& file) {
  auto store = cache::Store::open(file, cache::Access::read_only);
  if (!store || store->readable()) return store;
  auto writer = cache::Store::open(file, cache::Access::read_write);
  if (!writer || writer->readable()) return writer;
  return fail(ErrorCode::io_failed, "cache merge: " + store->message());
}

Expected<int> merge_caches(const Options& options, Output& output) {
  std::vector<cache::Store> stores;
  for (const std::string& file : options.arguments) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      return fail(ErrorCode::bad_input, fmt::format("cache merge: there is no file '{}'", file));
    }
    if (fs::is_regular_file(file, ignored) && fs::file_size(file, ignored) == 0) {
      return fail(ErrorCode::bad_input, fmt::format("cache merge: the file '{}' is empty", file));
    }
    auto store = open_source(file);
    if (!store) return tl::unexpected(store.error());
    if (!store->message().empty()) output.warn(store->message());
    stores.push_back(*std::move(store));
  }
  auto target = open_writable(options, output);
  if (!target) return tl::unexpected(target.error());
  std::vector<const cache::Store*> others;
  for (const cache::Store& store : stores) others.push_back(&store);
  const auto done = target->merge(others, is_known_as_current);
  if (!done) return tl::unexpected(done.error());
  if (const auto told = tell(*done, *target, options.arguments, "merged", output); !told) {
    return tl::unexpected(told.error());
  }
  return kExitDone;
}

Expected<int> export_winners(const Options& options, Output& output) {
  if (options.yaml.empty()) {
    return fail(ErrorCode::bad_input,
                "cache export: give --yaml FILE, --yaml FOLDER (one file per GPU) or --yaml -");
  }
  if (options.yaml == "-" && options.json == "-") {
    return fail(ErrorCode::bad_input, "cache export: --yaml and --json cannot both go to stdout");
  }
  const auto store = open_subject(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  const std::string pattern = options.arguments.empty() ? "" : options.arguments.front();
  const auto winners = winners_like(*store, pattern, options.device);
  if (!winners) return tl::unexpected(winners.error());
  io::CacheExportJson document{store->path().string(), {}, {}};
  const auto files = exportable(*winners, document.left_out, output);
  if (files.empty()) {
    return fail(ErrorCode::failed,
                fmt::format("cache export: {} has no winner to write{}{}", store->path().string(),
                            options.device.empty() ? "" : " of " + options.device,
                            pattern.empty() ? "" : " for " + pattern));
  }
  std::error_code ignored;
  const bool folder = fs::is_directory(options.yaml, ignored);
  if (!folder && options.yaml.ends_with('/')) {
    return fail(ErrorCode::bad_input,
                fmt::format("cache export: --yaml: there is no folder '{}'", options.yaml));
  }
  if (!folder && files.size() > 1) {
    return fail(ErrorCode::bad_input,
                fmt::format("cache export: a file holds one GPU, and there are winners of {}: "
                            "choose with --device, or give a folder",
                            names_of(files)));
  }
  for (const auto& [name, file] : files) {
    const fs::path path =
        folder ? fs::path(options.yaml) / (slug_of(name) + ".yaml") : fs::path(options.yaml);
    const auto count = static_cast<std::int64_t>(file.entries.size());
    document.files.push_back({name, path.string(), count});
    if (path == "-") {
      output.result(io::tuned_text(file));
      continue;
    }
    if (const auto written = write_whole(path, io::tuned_text(file)); !written) {
      return tl::unexpected(written.error());
    }
    output.text(fmt::format("{}: {} of {}\n", path.string(), counted(count, "winner"), name));
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

Expected<int> import_winners(const Options& options, Output& output) {
  // All are read before the first is written.
  std::vector<Import> imports;
  for (const std::string& file : options.arguments) {
    auto import = read_import(file, output);
    if (!import) return tl::unexpected(import.error());
    imports.push_back(*std::move(import));
  }
  auto store = open_writable(options, output);
  if (!store) return tl::unexpected(store.error());
  cache::Merged total;
  std::vector<io::LeftOutJson> left_out;
  for (const Import& import : imports) {
    left_out.insert(left_out.end(), import.left_out.begin(), import.left_out.end());
    const auto done = store->adopt(import.uid, import.info, std::time(nullptr), import.winners,
                                   is_known_as_current);
    if (!done) return tl::unexpected(done.error());
    total.runs += done->runs;
    total.trials += done->trials;
    total.winners += done->winners;
  }
  if (const auto told =
          tell(total, *store, options.arguments, "imported", output, std::move(left_out));
      !told) {
    return tl::unexpected(told.error());
  }
  return kExitDone;
}

}  // namespace autotune::cli

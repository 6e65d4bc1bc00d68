#include "autotune/tune/observations.h"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <string_view>

#include "autotune/io/load.h"
#include "autotune/io/results.h"
#include "cache/store.h"
#include "kernels/stages.h"

namespace autotune::tune {
namespace {

Expected<void> check_device(const std::filesystem::path& path, const std::string& measured_on,
                            const DeviceSpec& device) {
  if (measured_on == device.name) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{} was measured on {}, not on {}; name that GPU with --device",
                          path.string(), measured_on, device.name));
}

// What every SQLite file begins with.
bool is_database(const std::filesystem::path& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string begin(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::int64_t>(begin.size()));
  return begin == kMagic;
}

Expected<Observations> from_cache(const std::filesystem::path& path, const DeviceSpec& device) {
  const auto store = cache::Store::open(path, cache::Access::read_only);
  if (!store) return tl::unexpected(store.error());
  Observations all;
  for (const Family* family : families()) {
    const auto keys = store->problem_keys(std::string(family->name), fingerprint(device));
    if (!keys) return tl::unexpected(keys.error());
    for (const std::string& key : *keys) {
      const auto trials = store->trials(key, fingerprint(device));
      if (!trials) return tl::unexpected(trials.error());
      for (const cache::TrialRecord& trial : *trials) {
        if (trial.outcome != Outcome::ok) continue;
        // From before a kernel changed: its times are of other code.
        const auto config = parse_config(trial.key.config, *family);
        if (!config) continue;
        if (source_hash(*config, trial.problem, device) != trial.key.source_hash) {
          continue;
        }
        if (family->stages.empty()) {
          all.trials.push_back({trial.problem, *config, trial.measurement.median_us});
        } else {
          ++all.mlps;
        }
      }
    }
  }
  return all;
}

Expected<Observations> from_sweeps(const std::filesystem::path& path, const DeviceSpec& device) {
  const auto sweeps = io::load_sweeps(path);
  if (!sweeps) return tl::unexpected(sweeps.error());
  Observations all;
  for (const io::Sweep& sweep : *sweeps) {
    if (auto same = check_device(path, sweep.device, device); !same) {
      return tl::unexpected(same.error());
    }
    const auto rows = observations_of(sweep);
    all.trials.insert(all.trials.end(), rows.begin(), rows.end());
  }
  return all;
}

Expected<Observations> from_winners(const std::filesystem::path& path, const DeviceSpec& device) {
  const auto text = io::read_file(path);
  if (!text) return tl::unexpected(text.error());
  const bool yaml = path.extension() == ".yaml";
  const auto file =
      yaml ? io::parse_tuned(*text, path.string()) : io::parse_results(*text, path.string());
  if (!file) return tl::unexpected(file.error());
  if (auto same = check_device(path, file->device, device); !same) {
    return tl::unexpected(same.error());
  }
  Observations all;
  for (const io::TunedEntry& entry : file->entries) {
    if (stage_count(entry.problem) > 1) {
      ++all.mlps;
      continue;
    }
    const auto config = parse_config(entry.config, *find_family(entry.problem.family));
    if (!config) return tl::unexpected(config.error());
    all.trials.push_back({entry.problem, *config, entry.median_us});
  }
  return all;
}

}  // namespace

std::vector<search::MeasuredConfig> observations_of(const io::Sweep& sweep) {
  std::vector<search::MeasuredConfig> all;
  const double reference_us = sweep.reference_us();
  for (const io::SweepRow& row : sweep.rows) {
    if (row.outcome != Outcome::ok) continue;
    all.push_back({sweep.problem, row.config, row.ratio * reference_us});
  }
  return all;
}

Expected<Observations> read_observations(const std::filesystem::path& path,
                                         const DeviceSpec& device) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || path.extension() == ".sweep") {
    return from_sweeps(path, device);
  }
  return is_database(path) ? from_cache(path, device) : from_winners(path, device);
}

}  // namespace autotune::tune

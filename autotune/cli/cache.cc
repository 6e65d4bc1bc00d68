// `autotune cache`: where the cache is, what it holds, whether it is sound.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/text.h"
#include "autotune/io/json.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"

namespace autotune::cli {
namespace {

Expected<int> show_path(const Options& options, Output& output) {
  const auto path = cache_path(options);
  if (!path) return tl::unexpected(path.error());
  std::error_code ignored;
  const bool exists = std::filesystem::exists(*path, ignored);
  output.result(path->string() + "\n");
  if (const auto done = output.json(io::CachePathJson{path->string(), exists}); !done) {
    return tl::unexpected(done.error());
  }
  return kExitDone;
}

// Here the cache is the subject, so one that cannot be opened is an error.
Expected<cache::Store> open(const Options& options, cache::Access access, Output& output) {
  const auto path = cache_path(options);
  if (!path) return tl::unexpected(path.error());
  auto store = cache::Store::open(*path, access);
  if (store && !store->message().empty()) output.warn(store->message());
  return store;
}

// The winners that `remove` would take.
Expected<std::vector<cache::WinnerRecord>> winners_like(const cache::Store& store,
                                                        const std::string& pattern) {
  std::vector<cache::WinnerRecord> found;
  for (const Family* family : families()) {
    auto winners = store.winners(std::string(family->name), "");
    if (!winners) return tl::unexpected(winners.error());
    for (cache::WinnerRecord& winner : *winners) {
      if (!cache::names_problem(pattern, winner.trial.key.problem_key)) continue;
      found.push_back(std::move(winner));
    }
  }
  return found;
}

io::CachedWinnerJson row_of(const cache::WinnerRecord& winner) {
  const cache::TrialRecord& trial = winner.trial;
  io::CachedWinnerJson row;
  row.device = name_in_fingerprint(trial.key.device_fingerprint);
  row.problem = trial.problem;
  row.config = trial.key.config;
  row.median_us = trial.measurement.median_us;
  row.tflops = tflops_of(flops(trial.problem), row.median_us);
  row.default_us = winner.default_us;
  row.lead_percent = winner.lead_percent;
  row.tie = winner.tie;
  row.compiler = trial.key.compiler;
  row.source_hash = trial.key.source_hash;
  row.time = trial.time;
  return row;
}

Expected<std::vector<io::CachedTrialJson>> trials_of(const cache::Store& store,
                                                     const cache::TrialKey& key) {
  auto trials = store.trials(key.problem_key, key.device_fingerprint);
  if (!trials) return tl::unexpected(trials.error());
  // Fastest first, then the failures.
  std::stable_sort(trials->begin(), trials->end(), [](const auto& a, const auto& b) {
    if ((a.outcome == Outcome::ok) != (b.outcome == Outcome::ok)) return a.outcome == Outcome::ok;
    return a.measurement.median_us < b.measurement.median_us;
  });
  std::vector<io::CachedTrialJson> rows;
  for (const cache::TrialRecord& trial : *trials) {
    rows.push_back({trial.key.config, std::string(to_string(trial.outcome)),
                    trial.measurement.median_us, trial.log});
  }
  return rows;
}

void print_list(const std::vector<io::CachedWinnerJson>& winners, Output& output) {
  Table table({{"problem", Table::Align::left},
               {"GPU", Table::Align::left},
               {"time"},
               {"TFLOP/s"},
               {"config", Table::Align::left}});
  for (const io::CachedWinnerJson& row : winners) {
    table.add({titled(row.problem), row.device, microseconds(row.median_us), teraflops(row.tflops),
               row.config});
  }
  output.result(table.empty() ? "No winners.\n" : table.str());
}

void print_shown(const io::CachedWinnerJson& row, Output& output) {
  Table table({{"time"}, {"outcome", Table::Align::left}, {"config", Table::Align::left}});
  for (const io::CachedTrialJson& trial : row.trials) {
    table.add({microseconds(trial.median_us), trial.outcome, trial.config});
  }
  output.result(fmt::format(
      "{} on {}\n  winner {}\n  {}, {} TFLOP/s, {}\n{}\n", titled(row.problem), row.device,
      row.config, microseconds(row.median_us), teraflops(row.tflops), row.compiler, table.str()));
}

Expected<int> list(const Options& options, Output& output, bool show) {
  auto store = open(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  const auto winners = winners_like(*store, options.pattern);
  if (!winners) return tl::unexpected(winners.error());

  io::CacheListJson document{store->path().string(), show, {}};
  for (const cache::WinnerRecord& winner : *winners) {
    document.winners.push_back(row_of(winner));
    if (!show) continue;
    auto trials = trials_of(*store, winner.trial.key);
    if (!trials) return tl::unexpected(trials.error());
    document.winners.back().trials = *std::move(trials);
    print_shown(document.winners.back(), output);
  }
  if (!show || winners->empty()) print_list(document.winners, output);
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

Expected<int> verify(const Options& options, Output& output) {
  const auto store = open(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  auto found = store->verify();
  if (!found) return tl::unexpected(found.error());
  for (const std::string& finding : found->findings) output.result(finding + "\n");
  output.result(
      fmt::format("{}: {}, {}, {}, {}\n", store->path().string(), counted(found->winners, "winner"),
                  counted(found->trials, "trial"), counted(found->cubins, "cubin"),
                  found->findings.empty()
                      ? "sound"
                      : counted(static_cast<std::int64_t>(found->findings.size()), "finding")));
  const int code = found->findings.empty() ? kExitDone : kExitFailed;
  const io::CacheVerifyJson document{store->path().string(), std::move(found->findings),
                                     found->trials, found->winners, found->cubins};
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return code;
}

Expected<int> remove(const Options& options, Output& output) {
  if (options.pattern.empty() != options.all) {
    return fail(ErrorCode::bad_input,
                "cache remove: give part of a problem's key, e.g. 'm=4096 n=4096', or --all");
  }
  auto store = open(options, cache::Access::read_write, output);
  if (!store) return tl::unexpected(store.error());
  if (!store->writable()) {
    return fail(ErrorCode::io_failed,
                fmt::format("cache remove: {} cannot be written", store->path().string()));
  }
  const auto removed = store->remove(options.pattern);
  if (!removed) return tl::unexpected(removed.error());
  output.result(fmt::format("Removed {}.\n", counted(*removed, "trial")));
  const io::CacheRemoveJson document{store->path().string(), *removed};
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

Expected<int> run(const Options& options, Output& output) {
  const std::string& action = options.action;
  if (!options.pattern.empty() && (action == "path" || action == "verify")) {
    return fail(ErrorCode::bad_input,
                fmt::format("cache: '{}' is too much: list, show and remove take a PATTERN",
                            options.pattern));
  }
  if (options.all && action != "remove") {
    return fail(ErrorCode::bad_input, "cache: --all goes with remove only");
  }
  if (action == "path") return show_path(options, output);
  if (action == "list") return list(options, output, false);
  if (action == "show") return list(options, output, true);
  if (action == "verify") return verify(options, output);
  if (action == "remove") return remove(options, output);
  return fail(ErrorCode::bad_input,
              fmt::format("cache: {}give one of path, list, show, verify, remove",
                          action.empty() ? "" : fmt::format("'{}' is not an action; ", action)));
}

}  // namespace

const Command kCacheCommand = {
    "cache",
    "Show, check or clean the cache: path, list, show, verify, remove",
    "  autotune cache path\n"
    "  autotune cache list\n"
    "  autotune cache show 'm=4096 n=4096 k=4096'\n"
    "  autotune cache remove 'm=4096 n=4096 k=4096'\n"
    "  autotune cache verify --cache /path/to/cache.db",
    kCacheArgs | kCache | kOutput,
    run,
};

}  // namespace autotune::cli

// `autotune cache`: where the cache is, what it holds, whether it is sound; removing from it. What
// goes from one cache to another is in cache_exchange.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/cache_exchange.h"
#include "autotune/cli/command.h"
#include "autotune/cli/open_store.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "autotune/io/json.h"
#include "autotune/lookup/guess.h"
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

std::string pattern_of(const Options& options) {
  return options.arguments.empty() ? std::string() : options.arguments.front();
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

// Of several words those that no winner has, most likely slips: ": none has 'beta=1'"; else
// nothing.
std::string unheard_of(const cache::Store& store, const std::string& pattern) {
  std::istringstream words(pattern);
  std::vector<std::string> strange;
  for (std::string word; words >> word;) {
    if (word == pattern) return "";
    const auto having = winners_like(store, word, "");
    if (having && having->empty()) strange.push_back("'" + word + "'");
  }
  return strange.empty() ? "" : fmt::format(": none has {}", fmt::join(strange, " or "));
}

void print_list(const std::vector<io::CachedWinnerJson>& winners, const cache::Store& store,
                const Options& options, Output& output) {
  Table table({{"problem", Table::Align::left},
               {"GPU", Table::Align::left},
               {"time"},
               {"TFLOP/s"},
               {"config", Table::Align::left}});
  for (const io::CachedWinnerJson& row : winners) {
    table.add({titled(row.problem), row.device, microseconds(row.median_us), teraflops(row.tflops),
               row.config});
  }
  if (!table.empty()) {
    output.result(table.str());
    return;
  }
  const std::string pattern = pattern_of(options);
  const std::string on = options.device.empty() ? "" : " on " + options.device;
  output.result(pattern.empty() ? fmt::format("No winners{}.\n", on)
                                : fmt::format("No winner{} matches '{}'{}.\n", on, pattern,
                                              unheard_of(store, pattern)));
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
  auto store = open_subject(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  const auto winners = winners_like(*store, pattern_of(options), options.device);
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
  if (!show || winners->empty()) print_list(document.winners, *store, options, output);
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

// Whether it could be the answer to anything; on a GPU that configs/gpus does not describe, whether
// there is such a config at all.
bool is_usable(const cache::TrialRecord& trial) {
  const std::string& print = trial.key.device_fingerprint;
  const DeviceSpec* device = io::find_fingerprint(print);
  if (device == nullptr) {
    return parse_config(trial.key.config, *find_family(trial.problem.family)).has_value();
  }
  return lookup::usable(trial.key.config, trial.problem, *device, {}, lookup::Where::here)
      .has_value();
}

// A newer version may have dropped what an older one stored: that is no damage.
void warn_of_unusable(const cache::Store& store, Output& output) {
  const auto winners = winners_like(store, "", "");
  if (!winners) return;  // the findings say why
  for (const cache::WinnerRecord& winner : *winners) {
    if (is_usable(winner.trial)) continue;
    output.warn(fmt::format(
        "{} on {}: never an answer, for this version has no such config that runs there "
        "('autotune explain' says why); tune it again: {}",
        describe(winner.trial.problem), name_in_fingerprint(winner.trial.key.device_fingerprint),
        winner.trial.key.config));
  }
}

Expected<int> verify(const Options& options, Output& output) {
  const auto store = open_subject(options, cache::Access::read_only, output);
  if (!store) return tl::unexpected(store.error());
  std::error_code ignored;
  if (!options.cache.empty() && !std::filesystem::exists(store->path(), ignored)) {
    return fail(ErrorCode::bad_input,
                fmt::format("cache verify: there is no file '{}'", store->path().string()));
  }
  auto found = store->verify();
  if (!found) return tl::unexpected(found.error());
  for (const std::string& finding : found->findings) output.result(finding + "\n");
  warn_of_unusable(*store, output);
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
  const std::string pattern = pattern_of(options);
  if (pattern.empty() != options.all) {
    return fail(
        ErrorCode::bad_input,
        "cache remove: give either words that name problems, e.g. 'm=4096 n=4096', or --all");
  }
  const auto path = cache_path(options);
  if (!path) return tl::unexpected(path.error());
  std::error_code ignored;
  io::CacheRemoveJson document{path->string(), 0};
  if (std::filesystem::exists(*path, ignored)) {
    auto store = open_writable(options, output);
    if (!store) return tl::unexpected(store.error());
    const auto removed = store->remove(pattern, options.device);
    if (!removed) return tl::unexpected(removed.error());
    document.removed = *removed;
  } else {  // opened to be written, it would be made
    warn_of_missing(options, output);
  }
  const bool named = !pattern.empty() || !options.device.empty();
  if (document.removed == 0 && named) {
    return fail(ErrorCode::failed,
                fmt::format("cache remove: {} has no trials{}{}", path->string(),
                            pattern.empty() ? "" : " of a problem that '" + pattern + "' matches",
                            options.device.empty() ? "" : " on " + options.device));
  }
  output.result(fmt::format("Removed {}.\n", counted(document.removed, "trial")));
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  return kExitDone;
}

Expected<int> list_winners(const Options& options, Output& output) {
  return list(options, output, false);
}
Expected<int> show_winners(const Options& options, Output& output) {
  return list(options, output, true);
}

struct Action {
  const char* name;
  enum class Takes : std::uint8_t { nothing, pattern, files } takes;
  Expected<int> (*run)(const Options& options, Output& output);
};

const Action kActions[] = {
    {"path", Action::Takes::nothing, show_path},
    {"list", Action::Takes::pattern, list_winners},
    {"show", Action::Takes::pattern, show_winners},
    {"verify", Action::Takes::nothing, verify},
    {"remove", Action::Takes::pattern, remove},
    {"merge", Action::Takes::files, merge_caches},
    {"export", Action::Takes::pattern, export_winners},
    {"import", Action::Takes::files, import_winners},
};

Expected<void> check_arguments(const Options& options, const Action& action) {
  const auto wrong = [&](const std::string& what) {
    return fail(ErrorCode::bad_input, fmt::format("cache {}: {}", action.name, what));
  };
  const auto& given = options.arguments;
  if (action.takes == Action::Takes::nothing && !given.empty()) {
    return wrong(fmt::format("'{}' is too much", given.front()));
  }
  if (action.takes == Action::Takes::pattern && given.size() > 1) {
    return wrong(
        fmt::format("'{}' is too much: a PATTERN of several words is one argument, e.g. "
                    "'m=4096 n=4096'",
                    given[1]));
  }
  if (action.takes == Action::Takes::files && given.empty()) return wrong("give one file or more");
  if (options.all && action.run != remove) return wrong("--all goes with remove only");
  const bool exports = action.run == export_winners;
  if (!options.yaml.empty() && !exports) return wrong("--yaml goes with export only");
  if (!options.device.empty() && action.takes != Action::Takes::pattern) {
    return wrong("--device goes with list, show, remove and export only");
  }
  return {};
}

Expected<int> run(const Options& options, Output& output) {
  std::string names;
  for (const Action& action : kActions) {
    if (options.action == action.name) {
      if (const auto sound = check_arguments(options, action); !sound) {
        return tl::unexpected(sound.error());
      }
      return action.run(options, output);
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", action.name);
  }
  const std::string given =
      options.action.empty() ? "" : fmt::format("'{}' is not an action; ", options.action);
  return fail(ErrorCode::bad_input, fmt::format("cache: {}give one of {}", given, names));
}

}  // namespace

const Command kCacheCommand = {
    "cache",
    "Show, check, clean or exchange the cache: path, list, show, verify, remove, merge, export, "
    "import",
    "  autotune cache path\n"
    "  autotune cache list\n"
    "  autotune cache show 'm=4096 n=4096 k=4096'\n"
    "  autotune cache remove 'm=4096 n=4096 k=4096'\n"
    "  autotune cache verify --cache /path/to/cache.db\n"
    "  autotune cache merge node1.db node2.db --cache all.db\n"
    "  autotune cache export --yaml configs/tuned\n"
    "  autotune cache import configs/tuned/nvidia-h200.yaml\n"
    "\n"
    "PATTERN is words that must all be true of a problem, in any order: family=geglu_mlp,\n"
    "m=4096, n=4096, k=512, tokens=128, hidden=512, intermediate=1524, bf16 or dtype=bf16,\n"
    "out=fp32, tn or layout=tn, align=16/16/16, beta=0 or beta=nonzero, mode=hot,\n"
    "splits_lines, exact_fp32, activation=silu. --device keeps list, show, remove and export\n"
    "to one GPU. remove takes trials of problems without a winner too, with --all and\n"
    "--device all that were measured on that GPU.",
    kCacheArgs | kCache | kOutput,
    run,
};

}  // namespace autotune::cli

#include "autotune/lookup/answer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "autotune/lookup/distance.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "search/check.h"
#include "search/plan.h"

namespace autotune::lookup {
namespace {

// A winner of another problem or device, as a guess for this one.
struct Neighbour {
  std::string device;
  Problem problem;
  std::string config;
  double median_us = 0;
  double distance = 0;
  bool same_device = false;
  bool same_cc = false;
};

// A config that runs on this device for this problem. What won on this very device needs only to
// fit; what comes from another must also not be expected to run badly here.
std::optional<Config> usable(const std::string& text, const Problem& problem,
                             const DeviceSpec& device, search::Limits limits, bool same_device) {
  const Family* family = find_family(problem.family);
  if (family == nullptr) return std::nullopt;
  const auto config = parse_config(text, *family);
  if (!config) return std::nullopt;
  const KernelTraits traits = traits_of(problem);
  if (!config->kernel->unsupported(traits, device).empty()) return std::nullopt;
  limits.keep_slow = limits.keep_slow || same_device;
  if (search::check(*config, problem, traits, device, limits, nullptr)) return std::nullopt;
  return *config;
}

BestConfig as_answer(const Problem& problem, const DeviceSpec& device, const Config& config,
                     Match match) {
  BestConfig best;
  best.problem = problem;
  best.device = device.name;
  best.config = to_string(config);
  best.match = match;
  return best;
}

// The user's own winner. One that was measured on other code than today's is only a good guess.
std::optional<BestConfig> exact_from_cache(const Problem& problem, const DeviceSpec& device,
                                           const cache::Store& store,
                                           const search::Limits& limits) {
  const auto found = store.winner(problem_key(problem), fingerprint(device));
  if (!found || !*found) return std::nullopt;
  const cache::TrialRecord& trial = (*found)->trial;
  const auto config = usable(trial.key.config, problem, device, limits, true);
  if (!config) return std::nullopt;
  const bool same_code = source_hash(*config, traits_of(problem), device) == trial.key.source_hash;
  BestConfig best =
      as_answer(problem, device, *config, same_code ? Match::exact : Match::nearest_problem);
  if (!same_code) best.from_problem = describe(trial.problem) + " (before the kernel changed)";
  best.median_us = trial.measurement.median_us;
  return best;
}

std::optional<BestConfig> exact_from_tuned(const Problem& problem, const DeviceSpec& device,
                                           std::span<const io::BuiltinTuned> tuned,
                                           const search::Limits& limits) {
  const std::string key = problem_key(problem);
  for (const io::BuiltinTuned& entry : tuned) {
    if (entry.device != device.name || problem_key(entry.problem) != key) continue;
    const auto config = usable(std::string(entry.config), problem, device, limits, true);
    if (!config) continue;
    BestConfig best = as_answer(problem, device, *config, Match::exact);
    best.median_us = entry.median_us;
    return best;
  }
  return std::nullopt;
}

void add_neighbour(std::vector<Neighbour>& all, const Problem& problem, const DeviceSpec& device,
                   Neighbour neighbour) {
  const auto far = distance(problem, neighbour.problem);
  if (!far || *far > kFarthest) return;
  neighbour.distance = *far;
  if (!neighbour.same_device) {
    const DeviceSpec* other = io::find_device(neighbour.device);
    neighbour.same_cc = other != nullptr && other->limits.cc == device.limits.cc;
  }
  all.push_back(std::move(neighbour));
}

// This device first, then GPUs of its kind; then the nearest, one with the same treatment of C and
// the same timing mode before another; then by name, so that the answer never depends on the order
// of rows.
auto preference(const Neighbour& neighbour, const Problem& problem) {
  const bool other_beta = (neighbour.problem.beta != 0) != (problem.beta != 0);
  const bool other_mode = neighbour.problem.mode != problem.mode;
  return std::make_tuple(!neighbour.same_device, !neighbour.same_cc, neighbour.distance,
                         other_beta || other_mode, neighbour.device,
                         problem_key(neighbour.problem));
}

std::vector<Neighbour> neighbours(const Problem& problem, const DeviceSpec& device,
                                  const Sources& sources) {
  std::vector<Neighbour> all;
  if (sources.store != nullptr) {
    const std::string here = fingerprint(device);
    const auto winners = sources.store->winners(problem.family, "");
    if (winners) {
      for (const cache::WinnerRecord& winner : *winners) {
        const cache::TrialRecord& trial = winner.trial;
        const bool same = trial.key.device_fingerprint == here;
        add_neighbour(
            all, problem, device,
            {std::string(name_in_fingerprint(trial.key.device_fingerprint)), trial.problem,
             trial.key.config, trial.measurement.median_us, 0, same, same});
      }
    }
  }
  for (const io::BuiltinTuned& entry : sources.tuned) {
    const bool same = entry.device == device.name;
    add_neighbour(all, problem, device,
                  {std::string(entry.device), entry.problem, std::string(entry.config),
                   entry.median_us, 0, same, same});
  }
  std::stable_sort(all.begin(), all.end(), [&](const Neighbour& a, const Neighbour& b) {
    return preference(a, problem) < preference(b, problem);
  });
  return all;
}

}  // namespace

Expected<BestConfig> answer(const Problem& problem, const DeviceSpec& device,
                            const Sources& sources, const Bounds& bounds) {
  if (sources.store != nullptr) {
    if (auto best = exact_from_cache(problem, device, *sources.store, bounds.limits))
      return *std::move(best);
  }
  if (auto best = exact_from_tuned(problem, device, sources.tuned, bounds.limits))
    return *std::move(best);

  for (const Neighbour& neighbour : neighbours(problem, device, sources)) {
    const auto config =
        usable(neighbour.config, problem, device, bounds.limits, neighbour.same_device);
    if (!config) continue;
    BestConfig best =
        as_answer(problem, device, *config,
                  neighbour.same_device ? Match::nearest_problem : Match::other_device);
    best.from_problem = describe(neighbour.problem);
    if (!neighbour.same_device) best.from_problem += " on " + neighbour.device;
    best.median_us = neighbour.median_us;
    return best;
  }

  const search::Space* space =
      bounds.space != nullptr ? bounds.space : io::default_space(problem.family);
  if (space == nullptr) {
    return fail(ErrorCode::bad_input, "no search space is built in for " + problem.family);
  }
  const auto candidate = search::default_candidate(problem, device, *space, bounds.limits);
  if (!candidate) return tl::unexpected(candidate.error());
  return as_answer(problem, device, candidate->config, Match::default_config);
}

Expected<BestConfig> answer_from(const std::filesystem::path& path, const Problem& problem,
                                 const DeviceSpec& device) {
  Sources sources;
  sources.tuned = io::tuned_entries();
  const auto file = path.empty() ? cache::default_path() : Expected<std::filesystem::path>(path);
  const auto store = file ? cache::Store::open(*file, cache::Access::read_only)
                          : Expected<cache::Store>(tl::unexpected(file.error()));
  if (store) sources.store = &*store;
  return answer(problem, device, sources);
}

}  // namespace autotune::lookup

#include "autotune/lookup/answer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
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

// One that was measured on other code than today's is only a neighbour.
std::optional<BestConfig> exact_from_store(const Problem& problem, const DeviceSpec& device,
                                           const cache::Store& store, Recollection& recollection,
                                           const search::Limits& limits) {
  const auto found = store.known_winner(problem_key(problem), fingerprint(device));
  if (!found || !*found) return std::nullopt;
  const cache::KnownWinner& winner = **found;
  const auto config = usable(winner.config, problem, device, limits, true);
  if (!config) return std::nullopt;
  const std::string& todays_hash = recollection.hash_of(*config, traits_of(problem), device);
  if (todays_hash != winner.source_hash) return std::nullopt;
  BestConfig best = as_answer(problem, device, *config, Match::exact);
  best.median_us = winner.median_us;
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
bool preferred(const Neighbour& a, const Neighbour& b, const Problem& problem) {
  const auto rank = [&problem](const Neighbour& each) {
    const bool other_beta = (each.problem.beta != 0) != (problem.beta != 0);
    const bool other_mode = each.problem.mode != problem.mode;
    return std::make_tuple(!each.same_device, !each.same_cc, each.distance,
                           other_beta || other_mode, std::string_view(each.device));
  };
  const auto ranks = std::pair(rank(a), rank(b));
  if (ranks.first != ranks.second) return ranks.first < ranks.second;
  return problem_key(a.problem) < problem_key(b.problem);
}

void add_store(std::vector<Neighbour>& all, const Problem& problem, const DeviceSpec& device,
               const cache::Store& store, Recollection& recollection) {
  const std::string here = fingerprint(device);
  for (const cache::KnownWinner& winner : recollection.winners(store, problem.family)) {
    const bool same = winner.device_fingerprint == here;
    add_neighbour(all, problem, device,
                  {std::string(name_in_fingerprint(winner.device_fingerprint)), winner.problem,
                   winner.config, winner.median_us, 0, same, same});
  }
}

std::vector<Neighbour> neighbours(const Problem& problem, const DeviceSpec& device,
                                  const Sources& sources, Recollection& recollection) {
  std::vector<Neighbour> all;
  for (const cache::Store* store : {sources.store, sources.bundle}) {
    if (store != nullptr) add_store(all, problem, device, *store, recollection);
  }
  for (const io::BuiltinTuned& entry : sources.tuned) {
    const bool same = entry.device == device.name;
    add_neighbour(all, problem, device,
                  {std::string(entry.device), entry.problem, std::string(entry.config),
                   entry.median_us, 0, same, same});
  }
  std::stable_sort(all.begin(), all.end(), [&](const Neighbour& a, const Neighbour& b) {
    return preferred(a, b, problem);
  });
  return all;
}

BestConfig answer_of(const Neighbour& neighbour, const Problem& problem, const DeviceSpec& device,
                     const Config& config) {
  BestConfig best = as_answer(problem, device, config,
                              neighbour.same_device ? Match::nearest_problem : Match::other_device);
  best.from_problem = describe(neighbour.problem);
  const bool same_problem = problem_key(neighbour.problem) == problem_key(problem);
  if (!neighbour.same_device) {
    best.from_problem += " on " + neighbour.device;
  } else if (same_problem) {
    best.from_problem += " (before the kernel changed)";
  }
  best.median_us = neighbour.median_us;
  return best;
}

}  // namespace

const std::vector<cache::KnownWinner>& Recollection::winners(const cache::Store& store,
                                                             const std::string& family) {
  const auto [list, fresh] = winners_.try_emplace({&store, family});
  if (fresh) list->second = store.known_winners(family).value_or(std::vector<cache::KnownWinner>{});
  return list->second;
}

const std::string& Recollection::hash_of(const Config& config, const KernelTraits& traits,
                                         const DeviceSpec& device) {
  const Config code = code_of(config);
  const auto [begin, end] = hashes_.equal_range(code);
  const auto known = std::find_if(
      begin, end, [&traits](const auto& entry) { return entry.second.traits == traits; });
  if (known != end) return known->second.hash;
  return hashes_.emplace(code, Hashed{traits, source_hash(config, traits, device)})->second.hash;
}

std::optional<BestConfig> known_answer(const Problem& problem, const DeviceSpec& device,
                                       const Sources& sources, const search::Limits& limits) {
  Recollection own;
  Recollection& recollection = sources.recollection != nullptr ? *sources.recollection : own;
  for (const cache::Store* store : {sources.store, sources.bundle}) {
    if (store == nullptr) continue;
    if (auto best = exact_from_store(problem, device, *store, recollection, limits)) return best;
  }
  if (auto best = exact_from_tuned(problem, device, sources.tuned, limits)) return best;

  for (const Neighbour& neighbour : neighbours(problem, device, sources, recollection)) {
    const auto config = usable(neighbour.config, problem, device, limits, neighbour.same_device);
    if (config) return answer_of(neighbour, problem, device, *config);
  }
  return std::nullopt;
}

Expected<BestConfig> default_answer(const Problem& problem, const DeviceSpec& device,
                                    const Bounds& bounds) {
  const search::Space* space =
      bounds.space != nullptr ? bounds.space : io::default_space(problem.family);
  if (space == nullptr) {
    return fail(ErrorCode::bad_input, "no search space is built in for " + problem.family);
  }
  const auto candidate = search::default_candidate(problem, device, *space, bounds.limits);
  if (!candidate) return tl::unexpected(candidate.error());
  return as_answer(problem, device, candidate->config, Match::default_config);
}

Expected<BestConfig> answer(const Problem& problem, const DeviceSpec& device,
                            const Sources& sources, const Bounds& bounds) {
  if (auto best = known_answer(problem, device, sources, bounds.limits)) return *std::move(best);
  return default_answer(problem, device, bounds);
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

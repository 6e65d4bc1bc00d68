#include "autotune/lookup/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/lookup/guess.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "kernels/stages.h"
#include "search/check.h"
#include "search/plan.h"

namespace autotune::lookup {
namespace {

// One that was measured on other code than today's is only a neighbour.
std::optional<BestConfig> exact_from_store(const Problem& problem, const DeviceSpec& device,
                                           const cache::Store& store, Recollection& recollection,
                                           const search::Limits& limits) {
  const auto found = store.known_winner(problem_key(problem), fingerprint(device));
  if (!found) recollection.note(found.error());
  if (!found || !*found) return std::nullopt;
  const cache::KnownWinner& winner = **found;
  const auto config = usable(winner.config, problem, device, limits, Where::here);
  if (!config) return std::nullopt;
  if (recollection.hash_of(*config, problem, device) != winner.source_hash) return std::nullopt;
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
    const auto config = usable(std::string(entry.config), problem, device, limits, Where::here);
    if (!config) continue;
    BestConfig best = as_answer(problem, device, *config, Match::exact);
    best.median_us = entry.median_us;
    return best;
  }
  return std::nullopt;
}

// The answers for its stages, joined: as good a match as the worse of them, but never an exact one,
// for the two were not measured together.
Expected<BestConfig> answer_by_stages(Known known, const Problem& problem, const DeviceSpec& device,
                                      const Bounds& bounds) {
  const Family* family = find_family(problem.family);
  std::vector<Config> configs;
  Match match = Match::nearest_problem;
  std::string from;
  for (std::size_t i = 0; i < known.stages.size(); ++i) {
    const auto stage = answer_of(std::move(known.stages[i]), stage_of(problem, i), device, bounds);
    if (!stage) return stage;
    const auto config = parse_config(stage->config, stage_of(*family, i));
    if (!config) return tl::unexpected(config.error());
    configs.push_back(*config);
    match = std::max(match, stage->match);
    const std::string source =
        stage->match == Match::exact ? describe(stage->problem) : stage->from_problem;
    if (!source.empty()) from += (from.empty() ? "" : " and ") + source;
  }
  const Config pair = join(configs[0], configs[1]);
  if (const auto verdict = search::check_memory(pair, problem, device, bounds.limits)) {
    return tl::unexpected(search::too_large(problem, device, *verdict));
  }
  BestConfig best = as_answer(problem, device, pair, match);
  best.from_problem = from;
  return best;
}

}  // namespace

const std::vector<cache::KnownWinner>& Recollection::winners(const cache::Store& store,
                                                             const std::string& family) {
  const auto [list, fresh] = winners_.try_emplace({&store, family});
  if (!fresh) return list->second;
  auto found = store.known_winners(family);
  if (found) {
    list->second = *std::move(found);
  } else {
    note(found.error());
  }
  return list->second;
}

std::string Recollection::hash_of(const Config& config, const Problem& problem,
                                  const DeviceSpec& device) {
  std::vector<std::string> hashes;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    hashes.push_back(hash_of_kernel(stage_of(config, i), traits_of(stage_of(problem, i)), device));
  }
  return joint_hash(hashes);
}

const std::string& Recollection::hash_of_kernel(const Config& config, const KernelTraits& traits,
                                                const DeviceSpec& device) {
  const Config code = code_of(config);
  const auto [begin, end] = hashes_.equal_range(code);
  const auto known = std::find_if(
      begin, end, [&traits](const auto& entry) { return entry.second.traits == traits; });
  if (known != end) return known->second.hash;
  return hashes_.emplace(code, Hashed{traits, source_hash(config, traits, device)})->second.hash;
}

bool is_stored(const Known& known) {
  if (known.exact) return !known.came_along;
  if (known.stages.empty()) {
    return std::any_of(known.nearest.begin(), known.nearest.end(), may_have_code);
  }
  return std::all_of(known.stages.begin(), known.stages.end(), is_stored);
}

Known known_about(const Problem& problem, const DeviceSpec& device, const Sources& sources,
                  const search::Limits& limits) {
  Recollection own;
  Recollection& recollection = sources.recollection != nullptr ? *sources.recollection : own;
  for (const cache::Store* store : {sources.store, sources.bundle}) {
    if (store == nullptr || sources.left_out) continue;
    if (auto best = exact_from_store(problem, device, *store, recollection, limits)) {
      return {std::move(best), {}, {}};
    }
  }
  if (!sources.left_out) {
    if (auto best = exact_from_tuned(problem, device, sources.tuned, limits)) {
      return {std::move(best), {}, {}, true};
    }
  }
  Known known;
  if (stage_count(problem) == 1) {
    known.nearest = nearest_winners(problem, device, sources, recollection, limits);
    return known;
  }
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    known.stages.push_back(known_about(stage_of(problem, i), device, sources, limits));
  }
  return known;
}

Expected<BestConfig> answer_of(Known known, const Problem& problem, const DeviceSpec& device,
                               const Bounds& bounds) {
  if (known.exact) return *std::move(known.exact);
  if (!known.stages.empty()) return answer_by_stages(std::move(known), problem, device, bounds);
  return choose(problem, device, known.nearest, bounds);
}

Expected<search::Candidate> default_candidate(const Problem& problem, const DeviceSpec& device,
                                              const Bounds& bounds) {
  const search::Space* space = io::space_for(problem.family, bounds.space);
  if (space == nullptr) {
    return fail(ErrorCode::bad_input,
                fmt::format("no search space is built in for {}; the kernel families are {}",
                            problem.family, family_names()));
  }
  return search::default_candidate(problem, device, *space, bounds.limits);
}

Expected<BestConfig> default_answer(const Problem& problem, const DeviceSpec& device,
                                    const Bounds& bounds) {
  const auto candidate = default_candidate(problem, device, bounds);
  if (!candidate) return tl::unexpected(candidate.error());
  return as_answer(problem, device, candidate->config, Match::default_config);
}

Expected<BestConfig> answer(const Problem& problem, const DeviceSpec& device,
                            const Sources& sources, const Bounds& bounds) {
  return answer_of(known_about(problem, device, sources, bounds.limits), problem, device, bounds);
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

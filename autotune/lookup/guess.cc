#include "autotune/lookup/guess.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "autotune/lookup/distance.h"
#include "autotune/lookup/ladder.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "search/transfer.h"

namespace autotune::lookup {
namespace {

// Of this device. More of them are further away, and say less.
constexpr std::size_t kFew = 6;

// What was never measured must promise so much more than what was.
constexpr double kDoubt = 1.03;
// And so much more where nothing was measured on this device, for then nothing corrects it, or a
// sibling's winner is of this very problem: 70 answers by such ones beside cuBLAS on an H200 1.068,
// on the H100 that they are of 1.072; the 25 that the model chose in their place 1.057 and 1.084.
constexpr double kDoubtElsewhere = 1.5;

// So much further away counts what was tuned on a sibling, and on another GPU of this compute
// capability, in doublings.
constexpr double kSiblingDistance = 0.5;
constexpr double kOtherSmsDistance = 1.0;

// A winner where it is stored, before anybody looked at its config.
struct Place {
  std::string_view device;
  const Problem* problem;
  std::string_view config;
  double median_us;
  double distance;
  Where where;
  bool same_cc;
  Holder holder;
};

// This device first, then GPUs of this compute capability; then the nearest; then what may have
// code in a cache or bundle; then by name.
bool preferred(const Place& a, const Place& b) {
  const auto rank = [](const Place& each) {
    return std::make_tuple(each.where != Where::here, !each.same_cc, each.distance,
                           each.holder == Holder::program, each.device);
  };
  const auto ranks = std::pair(rank(a), rank(b));
  if (ranks.first != ranks.second) return ranks.first < ranks.second;
  return problem_key(*a.problem) < problem_key(*b.problem);
}

bool same_dimensions(const Problem& a, const Problem& b) {
  return a.m == b.m && a.n == b.n && a.k == b.k;
}

class Collector {
 public:
  Collector(const Problem& problem, const DeviceSpec& device, bool left_out)
      : problem_(problem), device_(device), left_out_(left_out) {}

  void add(std::string_view device, const Problem& problem, std::string_view config,
           double median_us, bool same_device, Holder holder) {
    const auto far = distance(problem_, problem);
    if (!far || *far > kFarthest) return;
    if (left_out_ && same_dimensions(problem_, problem)) return;
    Place place{device, &problem, config, median_us, *far, Where::here, true, holder};
    if (!same_device) {
      const DeviceSpec* other = io::find_device(device);
      place.same_cc = other != nullptr && other->limits.cc == device_.limits.cc;
      const bool sibling = place.same_cc && other->sm_count == device_.sm_count;
      place.where = sibling ? Where::sibling : Where::elsewhere;
      if (place.same_cc) place.distance += sibling ? kSiblingDistance : kOtherSmsDistance;
    }
    places_.push_back(place);
  }

  std::vector<Place> sorted() && {
    std::stable_sort(places_.begin(), places_.end(), preferred);
    return std::move(places_);
  }

 private:
  const Problem& problem_;
  const DeviceSpec& device_;
  bool left_out_;
  std::vector<Place> places_;
};

BestConfig answer_of(const Guess& guess, const Problem& problem, const DeviceSpec& device) {
  const bool here = guess.where == Where::here;
  BestConfig best =
      as_answer(problem, device, guess.config, here ? Match::nearest_problem : Match::other_device);
  best.from_problem = describe(guess.problem);
  if (!here) {
    best.from_problem += " on " + guess.device;
  } else if (problem_key(guess.problem) == problem_key(problem)) {
    best.from_problem += " (before the kernel changed)";
  }
  best.median_us = guess.median_us;
  return best;
}

double expected_us(const search::CorrectedModel& model, const Config& config,
                   const Problem& problem, const DeviceSpec& device, search::Limits limits) {
  limits.keep_slow = true;
  Resources resources;
  if (search::check(config, problem, traits_of(problem), device, limits, &resources)) {
    return std::numeric_limits<double>::infinity();
  }
  return model.predict_us(config, problem, resources);
}

}  // namespace

std::optional<Config> usable(const std::string& text, const Problem& problem,
                             const DeviceSpec& device, search::Limits limits, Where where) {
  const Family* family = find_family(problem.family);
  if (family == nullptr) return std::nullopt;
  const auto config = parse_config(text, *family);
  if (!config) return std::nullopt;
  limits.keep_slow = limits.keep_slow || where == Where::here;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Problem stage = stage_of(problem, i);
    const Config own = stage_of(*config, i);
    const KernelTraits traits = traits_of(stage);
    if (!own.kernel->unsupported(traits, device).empty()) return std::nullopt;
    if (stage.k < own.kernel->least_k(traits)) return std::nullopt;
    if (search::check(own, stage, traits, device, limits, nullptr)) return std::nullopt;
  }
  return *config;
}

bool may_have_code(const Guess& guess) {
  return guess.where == Where::here && guess.holder != Holder::program;
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

std::vector<Guess> nearest_winners(const Problem& problem, const DeviceSpec& device,
                                   const Sources& sources, Recollection& recollection,
                                   const search::Limits& limits) {
  Collector collector(problem, device, sources.left_out);
  const std::string here = fingerprint(device);
  for (const auto& [store, holder] :
       {std::pair(sources.store, Holder::cache), std::pair(sources.bundle, Holder::bundle)}) {
    if (store == nullptr) continue;
    for (const cache::KnownWinner& winner : recollection.winners(*store, problem.family)) {
      collector.add(name_in_fingerprint(winner.device_fingerprint), winner.problem, winner.config,
                    winner.median_us, winner.device_fingerprint == here, holder);
    }
  }
  for (const io::BuiltinTuned& entry : sources.tuned) {
    collector.add(entry.device, entry.problem, entry.config, entry.median_us,
                  entry.device == device.name, Holder::program);
  }
  std::vector<Guess> guesses;
  for (const Place& place : std::move(collector).sorted()) {
    if (place.where == Where::elsewhere && !guesses.empty()) continue;
    // What was imported, or tuned with the same result, counts once.
    const auto known = std::find_if(guesses.begin(), guesses.end(), [&place](const Guess& guess) {
      return guess.device == place.device && guess.problem == *place.problem &&
             to_string(guess.config) == place.config;
    });
    if (known != guesses.end()) {
      known->holder = std::max(known->holder, place.holder);
      continue;
    }
    if (place.where == Where::here && guesses.size() == kFew) continue;
    const auto config = usable(std::string(place.config), problem, device, limits, place.where);
    if (!config) continue;
    guesses.push_back({std::string(place.device), *place.problem, *config, place.median_us,
                       place.distance, place.where, place.holder});
    if (place.where != Where::here) break;
  }
  return guesses;
}

Expected<BestConfig> choose(const Problem& problem, const DeviceSpec& device,
                            const std::vector<Guess>& guesses, const Bounds& bounds) {
  if (guesses.empty()) return default_answer(problem, device, bounds);
  std::vector<search::Tuned> tuned;
  for (const Guess& guess : guesses) {
    if (guess.where != Where::here || guess.median_us <= 0) continue;
    tuned.push_back({guess.problem, guess.config, guess.median_us, guess.distance});
  }
  const search::CorrectedModel model(std::move(tuned), device, bounds.limits.max_sms);
  const bool on_a_ladder = std::any_of(guesses.begin(), guesses.end(), [&](const Guess& guess) {
    return may_have_code(guess) && is_rung_above(guess.problem, problem);
  });
  const bool without_search = bounds.tuned_only || on_a_ladder;
  const bool only_ready =
      without_search && std::any_of(guesses.begin(), guesses.end(), may_have_code);
  const Guess& nearest = guesses.front();
  const auto of_this_problem = [&](const Guess& guess) {
    return !without_search && guess.where == Where::sibling && guess.distance <= kSiblingDistance;
  };
  const auto twin = std::find_if(guesses.begin(), guesses.end(), of_this_problem);
  const bool has_twin = twin != guesses.end();
  const auto counts = [&](const Guess& guess) {
    if (only_ready) return may_have_code(guess);
    if (has_twin) return &guess == &*twin || guess.distance < twin->distance;
    if (guess.where == Where::here || nearest.where != Where::here) return true;
    return !without_search && guess.distance < nearest.distance;
  };
  const Guess* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Guess& guess : guesses) {
    if (!counts(guess)) continue;
    const double us = expected_us(model, guess.config, problem, device, bounds.limits);
    if (best != nullptr && us >= least) continue;
    best = &guess;
    least = us;
  }

  if (without_search) return answer_of(*best, problem, device);
  const auto candidate = default_candidate(problem, device, bounds);
  const double doubt = nearest.where == Where::here && !has_twin ? kDoubt : kDoubtElsewhere;
  if (candidate &&
      model.predict_us(candidate->config, problem, candidate->resources) * doubt < least) {
    return as_answer(problem, device, candidate->config, Match::default_config);
  }
  return answer_of(*best, problem, device);
}

}  // namespace autotune::lookup

// The top predictions spread over kernels and tile shapes; then, again and again, what a surrogate
// that learned from the results so far expects to improve most on the best of them, until the next
// ones hardly have a chance to, or many in a row did not. In the end the best codes in every order
// of their tiles and of their k tiles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "search/strategies.h"
#include "search/surrogate.h"

namespace autotune::search {
namespace {

constexpr std::size_t kOpening = 8;      // tile shapes at first
constexpr std::size_t kOfKernel = 2;     // of them at least so many of each kernel: the prediction
                                         // ranks one kernel's configs better than two kernels
constexpr std::size_t kAhead = 8;        // configs given and not yet known, after the opening,
constexpr std::size_t kAheadLater = 14;  // and when much is known
constexpr std::size_t kField = 8000;  // of each kernel, the best as predicted: none else is taken
constexpr std::size_t kShortlist = 1500;  // configs that the choice is made among
constexpr std::size_t kFewest = 24;       // configs before it may be done
constexpr double kGain = 0.01;            // what is worth going on for
constexpr double kChance = 0.05;          // that any of the next ones brings it, else done
constexpr std::size_t kPatience = 32;  // configs in a row that may bring less than that, else done;
                                       // where another is asked for, it alone ends the search
constexpr double kCompiled = 0.3;     // what a gain is worth whose code is to be compiled: guessed;
                                      // tuning with code there went from 2.3 to 1.3 - 1.8 s
constexpr std::size_t kTopCodes = 3;  // whose tile orders are all measured: they take no compiler,
                                      // and are far apart even where all tiles run at once
constexpr double kLongUs = 300;       // but only of launches shorter than this
constexpr double kFailure = 0.4;      // a failure tells of those like it as if it were this much
                                      // slower, in log time, than others

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// By how much log time falls under `best`, on average, where it is normal around `mean`.
double expected_improvement(double best, double mean, double deviation) {
  const double z = (best - mean) / deviation;
  return (best - mean) * below(z) + deviation * density(z);
}

bool staggers(const Candidate& candidate) {
  return candidate.config.kernel->tile_order(candidate.config).stagger != 0;
}

// The survivors that the choice is made among, by their places in the plan. Staggered k tiles, of
// which the prediction knows nothing, come in the end, with the best codes; but of a kernel that
// has no others. The default config is always in it.
std::vector<std::size_t> field_of(const Plan& plan) {
  std::set<const HostTwin*> with_others;
  for (const Candidate& each : plan.survivors) {
    if (!staggers(each)) with_others.insert(each.config.kernel);
  }
  std::vector<std::size_t> field;
  std::map<const HostTwin*, std::size_t> of_kernel;
  for (std::size_t i = 0; i < plan.survivors.size(); ++i) {
    const Config& config = plan.survivors[i].config;
    if (i > 0 && staggers(plan.survivors[i]) && with_others.contains(config.kernel)) continue;
    if (++of_kernel[config.kernel] <= kField) field.push_back(i);
  }
  return field;
}

std::vector<Candidate> candidates_of(const Plan& plan, const std::vector<std::size_t>& places) {
  std::vector<Candidate> candidates;
  candidates.reserve(places.size());
  for (const std::size_t place : places) candidates.push_back(plan.survivors[place]);
  return candidates;
}

// How a kernel's blocks work together: in clusters, on parts of k, through a workspace.
using Manner = std::tuple<const HostTwin*, bool, bool, bool>;

Manner manner_of(const Candidate& candidate) {
  return {candidate.config.kernel, candidate.resources.cluster > 1,
          value_of(candidate.config, "split_k") > 1, candidate.resources.workspace_bytes > 0};
}

// Within, a candidate is a place in the field, but in the end, where orders are places in the plan.
class ModelGuided final : public Strategy {
 public:
  ModelGuided(const Plan& plan, StrategyOptions options)
      : plan_(plan),
        places_(field_of(plan)),
        field_(candidates_of(plan, places_)),
        surrogate_(field_),
        has_code_(std::move(options.has_code)),
        patience_(options.patience),
        planned_(field_.size()),
        worth_(field_.size()) {
    open();
  }

  std::string_view name() const override { return "model"; }

  std::vector<std::size_t> next(std::span<const Observation> history, std::size_t limit) override {
    if (!opening_.empty()) {
      const auto count = static_cast<std::ptrdiff_t>(std::min(limit, opening_.size()));
      const std::vector<std::size_t> batch(opening_.begin(), opening_.begin() + count);
      opening_.erase(opening_.begin(), opening_.begin() + count);
      return in_plan(batch);
    }
    for (; known_ < history.size(); ++known_) note(history[known_]);
    // Fewer at a time would ask for the same sums more often.
    const std::size_t under_way = pending_.size() + outside_pending_.size();
    if (under_way > ahead() / 2) return {};
    return choose(std::min(limit, ahead() - under_way));
  }

 private:
  std::vector<std::size_t> in_plan(std::vector<std::size_t> batch) const {
    for (std::size_t& candidate : batch) candidate = places_[candidate];
    return batch;
  }

  std::size_t ahead() const { return known_ < kFewest ? kAhead : kAheadLater; }

  // The best of each tile shape as predicted, and of each way for blocks to work together; the
  // first of all is the default config.
  void open() {
    std::set<std::tuple<const HostTwin*, std::int32_t, std::int32_t>> shapes;
    std::map<const HostTwin*, std::size_t> of_kernel;
    const auto add_shapes = [&](std::size_t most, std::size_t most_of_kernel) {
      for (std::size_t i = 0; i < field_.size() && opening_.size() < most; ++i) {
        const Config& config = field_[i].config;
        if (of_kernel[config.kernel] >= most_of_kernel) continue;
        const auto shape =
            std::tuple(config.kernel, value_of(config, "block_m"), value_of(config, "block_n"));
        if (!shapes.insert(shape).second) continue;
        add_to_opening(i);
        ++of_kernel[config.kernel];
      }
    };
    add_shapes(field_.size(), kOfKernel);
    std::set<Manner> manners;
    for (const std::size_t i : opening_) manners.insert(manner_of(field_[i]));
    for (std::size_t i = 0; i < field_.size(); ++i) {
      if (manners.insert(manner_of(field_[i])).second) add_to_opening(i);
    }
    add_shapes(kOpening, field_.size());
    std::sort(opening_.begin(), opening_.end());
  }

  void add_to_opening(std::size_t candidate) {
    opening_.push_back(candidate);
    give(candidate);
  }

  void give(std::size_t candidate) {
    planned_[candidate] = true;
    pending_.insert(candidate);
  }

  // Its place in the field; none where it stands outside.
  std::optional<std::size_t> in_field(std::size_t survivor) const {
    const auto place = std::lower_bound(places_.begin(), places_.end(), survivor);
    if (place == places_.end() || *place != survivor) return std::nullopt;
    return static_cast<std::size_t>(place - places_.begin());
  }

  void note(const Observation& seen) {
    const std::optional<std::size_t> candidate = in_field(seen.candidate);
    if (candidate) {
      planned_[*candidate] = true;  // a former winner may come from elsewhere
      pending_.erase(*candidate);
    } else {
      outside_.insert(seen.candidate);
      outside_pending_.erase(seen.candidate);
    }
    if (seen.outcome == Outcome::ok) {
      if (candidate) {
        good_.push_back({*candidate, seen.median_us});
      } else {
        good_outside_.push_back({seen.candidate, seen.median_us});
      }
      best_ = std::min(best_, std::log(seen.median_us));
      if (best_ < gained_ - kGain) {
        gained_ = best_;
        gained_at_ = known_;
      }
    } else if (candidate) {
      failed_.push_back(*candidate);
    }
  }

  std::vector<std::size_t> choose(std::size_t count) {
    if (good_.empty()) return given(down_the_ranking(count));
    learn();
    Promising next = promising(ahead());
    const std::size_t idle = known_ - gained_at_;
    const bool done = patience_ > 0 ? idle > patience_ : idle > kPatience || next.chance < kChance;
    if (known_ >= kFewest && done) return other_orders(count);
    orders_.clear();  // other codes may be the best when this is over
    next.candidates.resize(std::min(next.candidates.size(), count));
    return given(std::move(next.candidates));
  }

  std::vector<std::size_t> given(std::vector<std::size_t> batch) {
    for (const std::size_t candidate : batch) give(candidate);
    return in_plan(std::move(batch));
  }

  // Some of the best codes' orders that were not given yet; none while anything is under way that
  // may come before them.
  std::vector<std::size_t> other_orders(std::size_t count) {
    if (orders_.empty() && pending_.empty() && outside_pending_.empty()) {
      orders_ = orders_of_best();
    }
    std::vector<std::size_t> batch;
    for (; !orders_.empty() && batch.size() < count; orders_.pop_back()) {
      const std::size_t survivor = orders_.back();
      if (was_given(survivor)) continue;
      batch.push_back(survivor);
      if (const auto candidate = in_field(survivor)) {
        give(*candidate);
      } else {
        outside_.insert(survivor);
        outside_pending_.insert(survivor);
      }
    }
    return batch;
  }

  bool was_given(std::size_t survivor) const {
    const auto candidate = in_field(survivor);
    return candidate ? planned_[*candidate] : outside_.contains(survivor);
  }

  std::vector<std::size_t> orders_of_best() const {
    std::vector<Surrogate::Sample> ranking = good_outside_;  // by places in the plan
    for (const Surrogate::Sample& each : good_) {
      ranking.push_back({places_[each.candidate], each.us});
    }
    std::sort(ranking.begin(), ranking.end(),
              [](const Surrogate::Sample& a, const Surrogate::Sample& b) {
                return std::tie(a.us, a.candidate) < std::tie(b.us, b.candidate);
              });
    std::vector<Config> codes;
    for (const Surrogate::Sample& each : ranking) {
      if (codes.size() == kTopCodes || each.us > kLongUs) break;
      const Config code = code_of(plan_.survivors[each.candidate].config);
      if (std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
    }
    std::vector<std::size_t> orders;
    for (std::size_t i = 0; i < plan_.survivors.size() && !codes.empty(); ++i) {
      const Config code = code_of(plan_.survivors[i].config);
      const bool best = std::find(codes.begin(), codes.end(), code) != codes.end();
      if (best && !was_given(i)) orders.push_back(i);
    }
    return orders;
  }

  struct Promising {
    std::vector<std::size_t> candidates;
    double chance;  // that any of them gains more than kGain
  };

  // One after the other those of most expected improvement, what is under way and what was chosen
  // before being as good as known.
  Promising promising(std::size_t count) {
    const std::vector<double> means = surrogate_.means();
    Surrogate::Shortlist list =
        surrogate_.shortlist(shortlisted(means), means, pending_.size() + count);
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (pending_.contains(list.candidate(i))) list.assume(i);
    }
    std::vector<bool> taken(list.size());
    Promising chosen;
    double no_gain = 1;
    while (chosen.candidates.size() < count) {
      const std::optional<std::size_t> most = most_promising(list, taken);
      if (!most) break;
      taken[*most] = true;
      chosen.candidates.push_back(list.candidate(*most));
      no_gain *= 1 - below((best_ - kGain - list.mean(*most)) / list.deviation(*most));
      list.assume(*most);
    }
    chosen.chance = 1 - no_gain;
    return chosen;
  }

  // By expected improvement, worth less where it takes a compiler. That is asked of those only that
  // would come first.
  std::optional<std::size_t> most_promising(const Surrogate::Shortlist& list,
                                            const std::vector<bool>& taken) {
    std::vector<std::pair<double, std::size_t>> gains;  // a heap, the greatest first
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t candidate = list.candidate(i);
      if (taken[i] || planned_[candidate]) continue;
      const double gain = expected_improvement(best_, list.mean(i), list.deviation(i));
      gains.emplace_back(gain * worth_[candidate].value_or(1), list.size() - i);
    }
    std::make_heap(gains.begin(), gains.end());
    while (!gains.empty()) {
      std::pop_heap(gains.begin(), gains.end());
      auto& [gain, behind] = gains.back();
      const std::size_t i = list.size() - behind;
      std::optional<double>& worth = worth_[list.candidate(i)];
      if (worth) return i;
      worth = !has_code_ || has_code_(places_[list.candidate(i)]) ? 1 : kCompiled;
      gain *= *worth;
      std::push_heap(gains.begin(), gains.end());
    }
    return std::nullopt;
  }

  void learn() {
    std::vector<Surrogate::Sample> samples = good_;
    double ratios = 0;  // logarithms
    for (const Surrogate::Sample& each : good_) {
      ratios += std::log(each.us / field_[each.candidate].predicted_us);
    }
    const double failed = std::exp(ratios / static_cast<double>(good_.size()) + kFailure);
    for (const std::size_t candidate : failed_) {
      samples.push_back({candidate, failed * field_[candidate].predicted_us});
    }
    surrogate_.learn(samples);
  }

  // The fastest as expected of those that were not given yet, and those that are under way.
  std::vector<std::size_t> shortlisted(const std::vector<double>& means) const {
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < means.size(); ++i) {
      if (!planned_[i]) list.push_back(i);
    }
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(std::min(kShortlist, list.size()));
    std::partial_sort(list.begin(), end, list.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(means[a], a) < std::tie(means[b], b);
    });
    list.erase(end, list.end());
    list.insert(list.end(), pending_.begin(), pending_.end());
    return list;
  }

  std::vector<std::size_t> down_the_ranking(std::size_t count) {
    std::vector<std::size_t> batch;
    for (; ranked_ < planned_.size() && batch.size() < count; ++ranked_) {
      if (!planned_[ranked_]) batch.push_back(ranked_);
    }
    return batch;
  }

  const Plan& plan_;
  std::vector<std::size_t> places_;  // of the field in the plan
  std::vector<Candidate> field_;
  Surrogate surrogate_;
  HasCode has_code_;
  std::size_t patience_;
  std::vector<std::size_t> opening_;          // what is left of it
  std::vector<bool> planned_;                 // ever given, or to be in the opening
  std::vector<std::optional<double>> worth_;  // of a gain, once it was asked for
  std::set<std::size_t> pending_;             // given and not yet known
  std::vector<std::size_t> orders_;           // of the best codes, to be given: places in the plan
  std::set<std::size_t> outside_;             // given from outside of the field: places in the plan
  std::set<std::size_t> outside_pending_;     // and not yet known
  std::size_t ranked_ = 0;                    // the ranking before it is planned
  std::size_t known_ = 0;                     // of the history
  std::vector<Surrogate::Sample> good_;
  std::vector<Surrogate::Sample> good_outside_;  // of the field: by places in the plan
  std::vector<std::size_t> failed_;
  double best_ = std::numeric_limits<double>::infinity();  // least log(us) seen
  double gained_ = best_;                                  // the same when it last fell by kGain
  std::size_t gained_at_ = 0;                              // known_ then
};

}  // namespace

std::unique_ptr<Strategy> make_model(const Plan& plan, StrategyOptions options) {
  return std::make_unique<ModelGuided>(plan, std::move(options));
}

}  // namespace autotune::search

#include "autotune/tune/finalists.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "kernels/kernel.h"
#include "search/plan.h"

namespace autotune::tune {
namespace {

// Clocks drift from trial to trial by more than configs differ, so the final begins wide.
constexpr std::size_t kFinalists = 20;
constexpr std::size_t kAtLeast = 3;
// With the same tile, and of one code in several tile orders: they differ least.
constexpr std::size_t kOfShape = 6;
constexpr std::size_t kOfCode = 3;
// What is further behind the second than this was not held back by noise. Behind the second, since
// a single one far ahead may be a mistake of its one measurement.
constexpr double kWithin = 1.1;
// These may have been timed in an earlier run.
constexpr double kSeededWithin = 1.3;
// Two whose times differ by less are as good as each other, if they may be equal at all.
constexpr double kSame = 0.002;
// And so are two that differ by less than their difference changes from process to process, where
// launches are short (two of 1024^3: 1.025 to 1.035 in five), but not by more than this share.
constexpr double kSameUs = 0.1;
constexpr double kMostSame = 0.004;

// Who is not behind by more than `behind`, or whose interval says that it may not be behind at all,
// is looked at again, `most` of them. Rounds are as many as take kLookUs in all, within bounds.
struct LookRule {
  int least_rounds;
  int most_rounds;
  bool thorough;
  double behind;
  std::size_t most;
};
constexpr std::array<LookRule, 3> kLooks{
    {{3, 48, false, 0.012, 6}, {6, 96, true, 0.004, 3}, {10, 240, true, 0, 1}}};
constexpr double kLookUs = 300'000;
// A thorough look takes more where those leave a ratio uncertain: as many as take kMoreUs, up to so
// many times as many.
constexpr int kMoreRounds = 4;
constexpr double kMoreUs = 50'000;

void retime(Trial& trial, const Measurement& timed) {
  trial.measurement.median_us = timed.median_us;
  trial.measurement.relative_error = timed.relative_error;
  trial.measurement.samples = timed.samples;
  trial.measurement.throttled = timed.throttled;
}

class Final {
 public:
  Final(std::vector<Trial>& trials, TimingMode mode, std::optional<std::size_t> default_index,
        std::optional<std::size_t> former_index, const Looking& looking)
      : trials_(trials),
        mode_(mode),
        default_(default_index),
        former_(former_index),
        looking_(looking) {}

  Expected<Standing> run() {
    std::vector<std::size_t> field = entrants();
    standing_.winner = field.front();
    standing_.leaders = field;
    for (const LookRule& rule : kLooks) {
      if (field.size() < 2) break;
      const auto seen = look(field, rule);
      if (!seen) return tl::unexpected(seen.error());
      if (seen->empty()) break;
      judge(*seen);
      if (rule.most > 1) field = remaining(*seen, rule);
    }
    standing_.lead_percent = lead_percent();
    return standing_;
  }

 private:
  struct Seen {
    std::size_t trial;
    double ratio;  // to the first of the look
    double lo;     // of its interval
  };

  using Shape = std::vector<std::tuple<const HostTwin*, std::int32_t, std::int32_t>>;
  Shape shape(std::size_t i) const {
    Shape shape;
    for (const Config* config = &trials_[i].config; config != nullptr; config = config->second) {
      shape.emplace_back(config->kernel, value_of(*config, "block_m"),
                         value_of(*config, "block_n"));
    }
    return shape;
  }

  std::string code(std::size_t i) const {
    std::string code;
    for (const Config* stage = &trials_[i].config; stage != nullptr; stage = stage->second) {
      Config alone = code_of(*stage);
      alone.second = nullptr;
      code += to_string(alone) + " ";
    }
    return code;
  }

  // Of two that are as good as each other.
  bool preferred(std::size_t a, std::size_t b) const {
    if (former_ == a || former_ == b) return former_ == a;
    const auto candidate = [](const Trial& trial) {
      return search::Candidate{trial.config, trial.predicted, trial.predicted_us};
    };
    return search::ranks_before(candidate(trials_[a]), candidate(trials_[b]));
  }

  double us(std::size_t i) const { return trials_[i].measurement.median_us; }
  double sample_us(std::size_t i) const {
    return us(i) * worker::launches_per_sample(mode_, us(i));
  }

  // The fastest as measured, the fastest first.
  std::vector<std::size_t> entrants() const {
    std::vector<std::size_t> order(trials_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [this](std::size_t a, std::size_t b) { return us(a) < us(b); });
    std::vector<std::size_t> field;
    std::map<Shape, std::size_t> of_shape;
    std::map<std::string, std::size_t> of_code;
    double round_us = 0;
    const double second = us(order[std::min<std::size_t>(1, order.size() - 1)]);
    for (const std::size_t each : order) {
      const bool full =
          field.size() == kFinalists ||
          (field.size() >= kAtLeast && round_us * kLooks.front().least_rounds > kLookUs);
      if (us(each) > second * kWithin || full) break;
      std::size_t& alike = of_shape[shape(each)];
      std::size_t& same_code = of_code[code(each)];
      if (alike == kOfShape || same_code == kOfCode) continue;
      ++alike;
      ++same_code;
      field.push_back(each);
      round_us += sample_us(each);
    }
    for (const auto& seeded : {former_, default_}) {
      if (seeded && us(*seeded) <= second * kSeededWithin) add(*seeded, field);
    }
    return field;
  }

  static void add(std::size_t trial, std::vector<std::size_t>& field) {
    if (std::find(field.begin(), field.end(), trial) == field.end()) field.push_back(trial);
  }

  // Those that were timed; none where that was not possible.
  Expected<std::vector<Seen>> look(const std::vector<std::size_t>& field, const LookRule& rule) {
    std::vector<const Trial*> trials;
    double round_us = 0;
    for (const std::size_t each : field) {
      trials.push_back(&trials_[each]);
      round_us += sample_us(each);
    }
    const auto rounds_in = [round_us](double us, int least, int most) {
      return std::clamp(static_cast<int>(us / round_us), least, most);
    };
    const int rounds = rounds_in(kLookUs, rule.least_rounds, rule.most_rounds);
    const int most = rule.thorough ? rounds_in(kMoreUs, rounds, rounds * kMoreRounds) : rounds;
    const auto reply = looking_(trials, {rounds, most});
    if (!reply) return tl::unexpected(reply.error());
    std::vector<Seen> seen;
    if (!*reply || (*reply)->outcome != Outcome::ok) return seen;
    for (std::size_t i = 0; i < std::min(field.size(), (*reply)->sides.size()); ++i) {
      const worker::Side& side = (*reply)->sides[i];
      if (side.outcome != Outcome::ok) continue;
      retime(trials_[field[i]], side.measurement);
      standing_.timed_again.insert(field[i]);
      seen.push_back({field[i], side.ratio, side.ratio_lo});
    }
    std::stable_sort(seen.begin(), seen.end(),
                     [](const Seen& a, const Seen& b) { return a.ratio < b.ratio; });
    return seen;
  }

  // Whether it may be as fast as the best, by its interval.
  static bool may_equal(const Seen& each, const Seen& best) { return each.lo <= best.ratio; }

  // As good as the best: too close to matter, or perhaps equal.
  bool level(const Seen& each, const Seen& best) const {
    const double behind = each.ratio / best.ratio - 1;
    return behind < std::min(kSameUs / us(best.trial), kMostSame) ||
           (behind < kSame && may_equal(each, best));
  }

  void judge(const std::vector<Seen>& seen) {
    const Seen& best = seen.front();
    standing_.winner = best.trial;
    standing_.tie = false;
    standing_.leaders.clear();
    for (const Seen& each : seen) standing_.leaders.push_back(each.trial);
    for (auto each = seen.begin() + 1; each != seen.end(); ++each) {
      const bool as_good = level(*each, best);
      if (as_good || may_equal(*each, best)) standing_.tie = true;
      if (as_good && preferred(each->trial, standing_.winner)) standing_.winner = each->trial;
    }
    const bool default_seen =
        default_ && std::any_of(seen.begin(), seen.end(),
                                [this](const Seen& each) { return each.trial == *default_; });
    if (default_seen && us(*default_) < us(standing_.winner)) standing_.winner = *default_;
  }

  // The best first, and with them the winner so far, which may be one of many that are level; the
  // default comes along, so that it and the winner are timed side by side.
  std::vector<std::size_t> remaining(const std::vector<Seen>& seen, const LookRule& rule) const {
    const Seen& best = seen.front();
    std::vector<std::size_t> field;
    for (const Seen& each : seen) {
      const bool close = each.ratio < best.ratio * (1 + rule.behind) || may_equal(each, best);
      if (close && field.size() < rule.most) field.push_back(each.trial);
    }
    add(standing_.winner, field);
    if (field.size() < 2) return field;
    if (default_ && us(*default_) <= us(field.front()) * kSeededWithin) add(*default_, field);
    return field;
  }

  double lead_percent() const {
    // Where there was a look, only those of the last were timed in its clocks.
    std::vector<std::size_t> others = standing_.leaders;
    if (standing_.timed_again.empty()) {
      others.resize(trials_.size());
      std::iota(others.begin(), others.end(), std::size_t{0});
    }
    double second = 0;
    for (const std::size_t i : others) {
      if (i != standing_.winner && (second == 0 || us(i) < second)) second = us(i);
    }
    return second == 0 ? 0 : std::max(0.0, (second / us(standing_.winner) - 1) * 100);
  }

  std::vector<Trial>& trials_;
  TimingMode mode_;
  std::optional<std::size_t> default_;
  std::optional<std::size_t> former_;
  const Looking& looking_;
  Standing standing_;
};

}  // namespace

worker::CompareRequest look_request(const Problem& problem, const TuneOptions& options, Look look) {
  worker::CompareRequest request;
  request.problem = problem;
  request.rounds = look.rounds;
  request.most_rounds = look.most_rounds;
  request.options.seed = options.seed;
  request.options.max_sms = options.limits.max_sms;
  return request;
}

Expected<Standing> settle(std::vector<Trial>& trials, TimingMode mode,
                          std::optional<std::size_t> default_index,
                          std::optional<std::size_t> former_index, const Looking& looking) {
  return Final(trials, mode, default_index, former_index, looking).run();
}

}  // namespace autotune::tune

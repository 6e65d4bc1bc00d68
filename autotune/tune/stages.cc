#include "autotune/tune/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autotune/tune/run_info.h"
#include "kernels/stages.h"
#include "search/check.h"
#include "search/model.h"

namespace autotune::tune {
namespace {

// Of each stage: its winner and who came close.
constexpr std::size_t kOfStage = 4;
// One kernel's config may gain by what it does to the caches for the other's, but not more.
constexpr double kWithin = 1.05;

class Joint {
 public:
  Joint(const SessionTools& tools, const Problem& problem, const std::vector<TuneResult>& stages,
        cache::Store* store)
      : tools_(tools),
        problem_(problem),
        stages_(stages),
        ledger_(store, problem, tools.device, run_fingerprint(tools.device, tools.options.limits),
                tools.compiler,
                [&tools](const std::string& message) { tools.observer.warning(message); }),
        code_(tools.pool, tools.memory, store, tools.device, tools.compiler,
              [this](const Error& error) { ledger_.write_failed(error); }) {}

  Expected<TuneResult> run() {
    add_pairs();
    const auto standing = settle(
        trials_, problem_.mode, default_, former_,
        [this](const std::vector<const Trial*>& trials, Look how) { return look(trials, how); });
    if (!standing) return tl::unexpected(standing.error());
    if (const auto timed = time_missing(*standing); !timed) return tl::unexpected(timed.error());
    return conclude(*standing);
  }

 private:
  void add_pairs() {
    for (const Trial& first : close(stages_[0])) {
      for (const Trial& second : close(stages_[1])) add(first, second);
    }
    if (stages_[0].default_trial && stages_[1].default_trial) {
      default_ = add(*stages_[0].default_trial, *stages_[1].default_trial);
    }
    add_former();
  }

  // The winner of an earlier run meets whatever this one found, unless its code is not today's. It
  // enters beside the first: its time is of both stages together, the others' are sums.
  void add_former() {
    const auto& before = ledger_.winner();
    if (!ledger_.winner_is_current() || !tools_.options.whole_space()) return;
    const auto config = parse_config(before->trial.key.config, *find_family(problem_.family));
    former_ = add(*config, before->trial.actual, trials_.front().measurement.median_us);
  }

  static std::vector<Trial> close(const TuneResult& stage) {
    std::vector<Trial> some{stage.winner};
    for (const Trial& each : stage.finalists) {
      const bool near = each.measurement.median_us < stage.winner.measurement.median_us * kWithin;
      if (some.size() == kOfStage || !near || each.config == stage.winner.config) continue;
      some.push_back(each);
    }
    return some;
  }

  std::size_t add(const Trial& first, const Trial& second) {
    ActualResources actual = first.actual;
    actual.registers = std::max(first.actual.registers, second.actual.registers);
    return add(join(first.config, second.config), actual,
               first.measurement.median_us + second.measurement.median_us);
  }

  std::size_t add(const Config& config, const ActualResources& actual, double us) {
    const auto known = std::find_if(trials_.begin(), trials_.end(),
                                    [&](const Trial& each) { return each.config == config; });
    if (known != trials_.end()) return static_cast<std::size_t>(known - trials_.begin());
    Trial& pair = trials_.emplace_back();
    pair.config = config;
    pair.outcome = Outcome::ok;
    const search::Limits& limits = tools_.options.limits;
    pair.predicted = resources_of(config, problem_, tools_.device, limits.max_sms);
    for (std::size_t i = 0; i < stage_count(problem_); ++i) {
      const Config own = stage_of(config, i);
      const Problem part = stage_of(problem_, i);
      const Resources needs = search::resources_of(own, part, tools_.device, limits);
      pair.predicted_us += search::predict_us(own, part, tools_.device, needs, limits.max_sms);
    }
    pair.actual = actual;
    pair.measurement.median_us = us;
    return trials_.size() - 1;
  }

  Expected<std::optional<worker::CompareReply>> look(const std::vector<const Trial*>& trials,
                                                     Look how) {
    const std::optional<worker::CompareReply> none;
    if (tools_.stop) return none;
    worker::CompareRequest request = look_request(problem_, tools_.options, how);
    request.id = ++looks_;
    for (const Trial* trial : trials) {
      auto entrant = code_.entrant(trial->config, problem_, [this] { return bool{tools_.stop}; });
      if (!entrant) {
        if (entrant.error().code == ErrorCode::cancelled) return none;
        return tl::unexpected(entrant.error());
      }
      if (entrant->failed) {
        failure_ = entrant->failed->log;
        return none;
      }
      request.contenders.push_back(std::move(entrant->contender));
    }
    auto reply = tools_.measurer.compare(request);
    if (reply && reply->outcome != Outcome::ok && trials.size() > 1) {
      reply = compare_sound(std::move(request), *std::move(reply));
    }
    if (!reply) return tl::unexpected(reply.error());
    for (const worker::Side& side : reply->sides) {
      if (side.outcome != Outcome::ok) failure_ = side.log;
    }
    if (reply->outcome != Outcome::ok) failure_ = reply->log;
    return std::optional(std::move(*reply));
  }

  // After a comparison that took the worker down: which of its pairs do, and the others once more.
  Expected<worker::CompareReply> compare_sound(worker::CompareRequest request,
                                               worker::CompareReply lost) {
    const std::vector<worker::Contender> all = std::exchange(request.contenders, {});
    std::vector<worker::Side> sides(all.size());
    std::vector<std::size_t> sound;
    worker::CompareRequest alone = request;
    alone.rounds = alone.most_rounds = 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      alone.id = ++looks_;
      alone.contenders = {all[i]};
      const auto reply = tools_.measurer.compare(alone);
      if (!reply) return reply;
      sides[i].outcome =
          reply->outcome != Outcome::ok ? reply->outcome : reply->sides.front().outcome;
      sides[i].log = reply->log;
      if (sides[i].outcome != Outcome::ok) continue;
      sound.push_back(i);
      request.contenders.push_back(all[i]);
    }
    if (sound.empty()) return lost;
    request.id = ++looks_;
    auto reply = tools_.measurer.compare(request);
    if (!reply || reply->outcome != Outcome::ok) return reply;
    for (std::size_t i = 0; i < sound.size(); ++i) sides[sound[i]] = reply->sides[i];
    reply->sides = std::move(sides);
    return reply;
  }

  // A single pair needs no final and a slow default is not in it, but both have a time of their
  // own.
  Expected<void> time_missing(const Standing& standing) {
    std::vector<std::size_t> wanted{standing.winner};
    if (default_ && *default_ != standing.winner) wanted.push_back(*default_);
    measured_ = standing.timed_again.contains(standing.winner);
    if (std::all_of(wanted.begin(), wanted.end(),
                    [&](std::size_t i) { return standing.timed_again.contains(i); })) {
      return {};
    }
    std::vector<const Trial*> trials;
    for (const std::size_t i : wanted) trials.push_back(&trials_[i]);
    const auto seen = look(trials, {30, 30});
    if (!seen) return tl::unexpected(seen.error());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool timed =
          *seen && (*seen)->outcome == Outcome::ok && (*seen)->sides[i].outcome == Outcome::ok;
      if (timed) trials_[wanted[i]].measurement = (*seen)->sides[i].measurement;
      if (i == 0) measured_ = measured_ || timed;
      if (i == 1 && !timed) default_.reset();
    }
    return {};
  }

  Expected<TuneResult> conclude(const Standing& standing) {
    if (!measured_) {
      return fail(tools_.stop ? ErrorCode::cancelled : ErrorCode::failed,
                  tools_.stop ? "stopped before the stages were measured together"
                              : fmt::format("the stages of {} do not work together: {}",
                                            describe(problem_), failure_));
    }
    TuneResult result;
    result.problem = problem_;
    result.winner = trials_[standing.winner];
    result.match = "exact";
    result.default_us = default_ ? trials_[*default_].measurement.median_us : 0;
    result.lead_percent = standing.lead_percent;
    result.tie = standing.tie;
    for (const TuneResult& stage : stages_) {
      result.cancelled = result.cancelled || stage.cancelled;
      result.reused += stage.reused;
      result.compiled += stage.compiled;
      for (const auto& [outcome, count] : stage.outcomes) result.outcomes[outcome] += count;
      result.failures.insert(result.failures.end(), stage.failures.begin(), stage.failures.end());
    }
    result.cancelled = result.cancelled || tools_.stop;
    result.seconds = std::chrono::duration<double>(Clock::now() - tools_.start).count();
    keep(result);
    return result;
  }

  void keep(TuneResult& result) {
    if (!ledger_.writes()) return;
    ledger_.begin(run_info(tools_.device, tools_.options, tools_.measurer));
    const std::string hash = source_hash(result.winner.config, problem_, tools_.device);
    ledger_.record(result.winner, hash);
    // A program that asks for the winner needs no compiler then.
    for (std::size_t i = 0; i < stage_count(problem_); ++i) {
      code_.save(source_hash(stage_of(result.winner.config, i), traits_of(stage_of(problem_, i)),
                             tools_.device));
    }
    if (tools_.options.whole_space()) result.crowned = ledger_.crown(result, hash);
    ledger_.end({});
    while (!code_.saved()) code_.save(1);
  }

  const SessionTools& tools_;
  const Problem& problem_;
  const std::vector<TuneResult>& stages_;
  Ledger ledger_;
  CodeSource code_;
  std::vector<Trial> trials_;
  std::optional<std::size_t> default_;
  std::optional<std::size_t> former_;
  std::string failure_;
  bool measured_ = false;
  std::uint64_t looks_ = 0;
};

}  // namespace

Expected<TuneResult> join_stages(const SessionTools& tools, const Problem& problem,
                                 const std::vector<TuneResult>& stages, cache::Store* store) {
  return Joint(tools, problem, stages, store).run();
}

}  // namespace autotune::tune

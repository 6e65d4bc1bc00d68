#include "autotune/gpu/contest.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace autotune::gpu {
namespace {

// Launches between two questions whether they are enough.
constexpr std::size_t kAtATime = 60;

void note(const Correctness& found, worker::Side& side) {
  side.measurement.result_error = found.error;
  side.measurement.max_error_ratio = found.max_ratio;
}

}  // namespace

Result<worker::CompareReply> Contest::run() {
  auto state = add_contenders();
  if (state && request_.baseline) state = add_baseline();
  if (state && !subjects_.empty()) state = time();
  if (!state) return tl::unexpected(state.error());
  return std::move(reply_);
}

// The workspace moves when it grows, and is gone where it could not grow: all ask for theirs before
// any takes its address, and those that got it ask once more behind those that did not.
std::vector<std::optional<Failure>> Contest::reserve_workspace() {
  std::vector<std::optional<Failure>> lacking(request_.contenders.size());
  for (int turn = 0; turn < 2; ++turn) {
    for (std::size_t i = 0; i < lacking.size(); ++i) {
      if (lacking[i]) continue;
      const auto parsed = rig_.config(request_.contenders[i].config);
      const auto reserved = parsed ? rig_.reserve(*parsed, request_.options.max_sms)
                                   : Result<void>(tl::unexpected(parsed.error()));
      if (!reserved) lacking[i] = reserved.error();
    }
  }
  return lacking;
}

// As it will be timed, once it was found right.
Result<Subject> Contest::ready(const worker::Contender& contender) {
  auto made = rig_.subject(contender, request_.options.max_sms);
  if (!made) return tl::unexpected(made.error());
  const auto found = rig_.check(*made);
  if (!found) return tl::unexpected(found.error());
  if (!found->ok) {
    return tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, found->what});
  }
  note(*found, reply_.sides.back());
  return rig_.in_mode(std::move(*made), mode_);
}

// A contender that does not run or is wrong stays behind; only a lost GPU ends the comparison.
Result<void> Contest::add_contenders() {
  const std::vector<std::optional<Failure>> lacking = reserve_workspace();
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    worker::Side& side = reply_.sides.emplace_back();
    auto made =
        lacking[i] ? Result<Subject>(tl::unexpected(*lacking[i])) : ready(request_.contenders[i]);
    if (made) {
      subjects_.push_back(std::move(*made));
      sides_.push_back(i);
      continue;
    }
    side.outcome = made.error().outcome;
    side.verdict = made.error().verdict;
    side.log = made.error().log;
    if (rig_.bench().lost()) return tl::unexpected(made.error());
  }
  return {};
}

Result<void> Contest::add_baseline() {
  const auto sample = [this](std::span<const Turn> order) -> Expected<std::vector<double>> {
    auto times = rig_.sample(order);
    if (!times) return fail(ErrorCode::failed, times.error().log);
    return std::move(*times);
  };
  auto chosen = Baseline::choose(rig_.bench(), rig_.timer(), sample, rig_.operands(), mode_);
  if (!chosen) return tl::unexpected(rig_.failure(chosen.error()));
  baseline_.emplace(std::move(*chosen));
  reply_.baseline_candidates = baseline_->candidates();
  for (const Baseline::Way& way : baseline_->ways()) {
    auto made = rig_.in_mode(Subject{way.launch,
                                     [this](void*, std::size_t place) {
                                       return rig_.operands().restore(rig_.bench(), place);
                                     },
                                     nullptr, 1},
                             mode_);
    if (!made) return tl::unexpected(made.error());
    subjects_.push_back(std::move(*made));
  }
  return {};
}

Result<void> Contest::time() {
  // Ahead of the clock: it warms nothing up.
  if (auto awake = rig_.wake_up(); !awake) return awake;
  int launches = 1;
  for (const Subject& subject : subjects_) launches = std::max(launches, subject.runs);
  Rounds rounds(subjects_.size(),
                {static_cast<std::size_t>(std::max(request_.rounds, 1)),
                 static_cast<std::size_t>(std::max({request_.most_rounds, request_.rounds, 1})),
                 request_.sustain_s, launches, rig_.lacking_warmth_s()});
  std::vector<std::size_t> launched(subjects_.size(), 0);
  const ClockState before = rig_.clocks();
  const Rig::Clock::time_point start = Rig::Clock::now();
  while (true) {
    const std::vector<std::size_t> order = rounds.next(kAtATime, Rig::Clock::now() - start);
    if (order.empty()) break;
    const auto taken =
        take_samples(rounds, order, Timer::kMostAtOnce, [&](std::span<const std::size_t> some) {
          std::vector<Turn> turns;
          for (const std::size_t i : some) {
            turns.push_back({&subjects_[i], launched[i]++ % rig_.operands().places()});
          }
          return rig_.sample(turns);
        });
    if (!taken) return taken;
  }
  const ClockState after = rig_.clocks();
  for (std::size_t i = 0; i < sides_.size(); ++i) judge(rounds, i, reply_.sides[sides_[i]]);
  if (baseline_) {  // the fastest of its ways, as it comes out here
    worker::Side& side = reply_.sides.emplace_back();
    std::size_t best = sides_.size();
    for (std::size_t i = best; i < subjects_.size(); ++i) {
      if (median(rounds.samples(i)) < median(rounds.samples(best))) best = i;
    }
    const Baseline::Way& way = baseline_->ways()[best - sides_.size()];
    reply_.baseline = way.name;
    note(way.result, side);
    judge(rounds, best, side);
  }
  for (worker::Side& side : reply_.sides) {
    if (side.outcome != Outcome::ok) continue;
    side.measurement.sm_mhz = after.sm_mhz;
    side.measurement.throttled = before.throttled || after.throttled;
  }
  return {};
}

void Contest::judge(const Rounds& rounds, std::size_t subject, worker::Side& side) const {
  summarise(rounds.samples(subject), side.measurement);
  const Rounds::Ratio ratio = rounds.ratio(subject);
  side.ratio = ratio.median;
  side.ratio_lo = ratio.interval.lo;
  side.ratio_hi = ratio.interval.hi;
}

}  // namespace autotune::gpu

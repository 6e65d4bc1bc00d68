#include "autotune/gpu/contest.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "autotune/gpu/rounds.h"
#include "kernels/kernel.h"

namespace autotune::gpu {
namespace {

// Behind each burst of a rested comparison: so much longer than it took.
constexpr int kRestPerWork = 2;
constexpr std::chrono::milliseconds kLongestRest{100};
// Launches of a comparison in a row, at least a round: as many as a benchmark of two takes at
// least, for which configs are chosen. Fewer keep a GPU cooler, more heat it up, and either may
// choose another.
constexpr std::size_t kBurst = 60;

}  // namespace

Result<worker::CompareReply> Contest::run() {
  auto state = add_contenders();
  if (state && request_.baseline) state = add_baseline();
  if (state && !subjects_.empty()) state = time();
  if (!state) return tl::unexpected(state.error());
  return std::move(reply_);
}

// Of the side that was added last.
void Contest::note(const Correctness& found) {
  reply_.sides.back().measurement.result_error = found.error;
  reply_.sides.back().measurement.max_error_ratio = found.max_ratio;
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
  if (!made) return made;
  const auto found = rig_.check(*made);
  if (!found) return tl::unexpected(found.error());
  if (!found->ok) {
    return tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, found->what});
  }
  note(*found);
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
  if (auto warm = rig_.warm_up(); !warm) return warm;
  auto chosen = Baseline::choose(rig_.bench(), rig_.timer(), rig_.operands(), mode_);
  if (!chosen) return tl::unexpected(rig_.failure(chosen.error()));
  baseline_.emplace(std::move(*chosen));
  reply_.baseline = baseline_->name();
  reply_.baseline_candidates = baseline_->candidates();
  reply_.sides.emplace_back();
  note(baseline_->result());
  auto made = rig_.in_mode(
      Subject{baseline_->launch(), [this](void*) { return rig_.operands().restore(rig_.bench()); },
              nullptr, 1},
      mode_);
  if (!made) return tl::unexpected(made.error());
  subjects_.push_back(std::move(*made));
  sides_.push_back(reply_.sides.size() - 1);
  return {};
}

Result<void> Contest::time() {
  const std::size_t count = subjects_.size();
  Rounds rounds(count,
                {static_cast<std::size_t>(std::max(request_.rounds, 1)),
                 static_cast<std::size_t>(std::max({request_.most_rounds, request_.rounds, 1})),
                 request_.sustain_s});
  const ClockState before = rig_.clocks();
  const Rig::Clock::time_point start = Rig::Clock::now();
  while (true) {
    const std::vector<std::size_t> order = rounds.next(kBurst, Rig::Clock::now() - start);
    if (order.empty()) break;
    if (request_.rested) std::this_thread::sleep_until(rested_at_);
    const Rig::Clock::time_point burst = Rig::Clock::now();
    for (std::size_t done = 0; done < order.size(); done += Timer::kMostAtOnce) {
      const std::vector<std::size_t> now(
          order.begin() + static_cast<std::ptrdiff_t>(done),
          order.begin() +
              static_cast<std::ptrdiff_t>(std::min(done + Timer::kMostAtOnce, order.size())));
      std::vector<const Subject*> launches;
      for (const std::size_t side : now) launches.push_back(&subjects_[side]);
      auto times = rig_.sample(launches);
      if (!times) return tl::unexpected(times.error());
      rounds.take(now, *times);
    }
    rested_at_ = rig_.last_busy() + std::min<Rig::Clock::duration>(
                                        kRestPerWork * (rig_.last_busy() - burst), kLongestRest);
  }
  const ClockState after = rig_.clocks();
  for (std::size_t i = 0; i < count; ++i) {
    worker::Side& side = reply_.sides[sides_[i]];
    summarise(rounds.samples(i), side.measurement);
    side.measurement.sm_mhz = after.sm_mhz;
    side.measurement.throttled = before.throttled || after.throttled;
    const Rounds::Ratio ratio = rounds.ratio(i);
    side.ratio = ratio.median;
    side.ratio_lo = ratio.interval.lo;
    side.ratio_hi = ratio.interval.hi;
  }
  return {};
}

}  // namespace autotune::gpu

#include "autotune/gpu/contest.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "autotune/gpu/rounds.h"
#include "kernels/kernel.h"

namespace autotune::gpu {
namespace {

// Behind each burst of a rested comparison: so much longer than it took.
constexpr int kRestPerWork = 2;
constexpr std::chrono::milliseconds kLongestRest{100};
// Launches of a comparison in a row, at least a round.
constexpr std::size_t kBurst = 16;

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

// A contender that does not run or is wrong stays behind; only a lost GPU ends the comparison.
Result<void> Contest::add_contenders() {
  const int max_sms = request_.options.max_sms;
  // The workspace moves when it grows, so all have asked for theirs before any takes its address.
  for (const worker::Contender& each : request_.contenders) {
    if (const auto parsed = rig_.config(each.config))
      static_cast<void>(rig_.reserve(*parsed, max_sms));
  }
  for (const worker::Contender& each : request_.contenders) {
    worker::Side& side = reply_.sides.emplace_back();
    const auto stay_behind = [&](const Failure& failed) {
      side.outcome = failed.outcome;
      side.verdict = failed.verdict;
      side.log = failed.log;
      return rig_.bench().lost() ? Result<void>(tl::unexpected(failed)) : Result<void>();
    };
    auto made = rig_.subject(each, max_sms);
    auto found = made ? rig_.check(*made) : Result<Correctness>(tl::unexpected(made.error()));
    if (found && !found->ok) {
      found = tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, found->what});
    }
    if (found) {
      note(*found);
      made = rig_.in_mode(std::move(*made), mode_);
    }
    if (!found || !made) {
      if (auto state = stay_behind(found ? made.error() : found.error()); !state) return state;
      continue;
    }
    subjects_.push_back(std::move(*made));
    sides_.push_back(reply_.sides.size() - 1);
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

// Contenders timed side by side, in interleaved rounds (CompareRequest says how).
#pragma once

#include <optional>
#include <vector>

#include "autotune/gpu/baseline.h"
#include "autotune/gpu/rig.h"
#include "autotune/gpu/rounds.h"

namespace autotune::gpu {

class Contest {
 public:
  Contest(Rig& rig, const worker::CompareRequest& request)
      : rig_(rig),
        request_(request),
        mode_(request.sustain_s > 0 ? TimingMode::hot : request.problem.mode) {}

  // On operands that are prepared. The failure of all, where nothing can be timed.
  Result<worker::CompareReply> run();
  // The first contender that was timed: good for as long as the operands, as the baseline is not.
  std::optional<Subject> first() const {
    return sides_.empty() ? std::nullopt : std::optional(subjects_.front());
  }

 private:
  std::vector<std::optional<Failure>> reserve_workspace();
  Result<Subject> ready(const worker::Contender& contender);
  Result<void> add_contenders();
  Result<void> add_baseline();
  Result<void> time();
  void judge(const Rounds& rounds, std::size_t subject, worker::Side& side) const;

  Rig& rig_;
  const worker::CompareRequest& request_;
  TimingMode mode_;
  std::optional<Baseline> baseline_;
  std::vector<Subject> subjects_;   // those that are timed, the baseline's ways last
  std::vector<std::size_t> sides_;  // which of the reply each contender among them is
  worker::CompareReply reply_;
};

}  // namespace autotune::gpu

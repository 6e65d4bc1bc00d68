// Contenders timed side by side, in interleaved rounds (CompareRequest says how).
#pragma once

#include <optional>
#include <vector>

#include "autotune/gpu/baseline.h"
#include "autotune/gpu/rig.h"

namespace autotune::gpu {

class Contest {
 public:
  // `rested_at` is from when on the next burst may begin, kept from comparison to comparison.
  Contest(Rig& rig, const worker::CompareRequest& request, Rig::Clock::time_point& rested_at)
      : rig_(rig),
        request_(request),
        rested_at_(rested_at),
        mode_(request.sustain_s > 0 ? TimingMode::hot : request.problem.mode) {}

  // On operands that are prepared. The failure of all, where nothing can be timed.
  Result<worker::CompareReply> run();

 private:
  std::vector<std::optional<Failure>> reserve_workspace();
  Result<Subject> ready(const worker::Contender& contender);
  Result<void> add_contenders();
  Result<void> add_baseline();
  Result<void> time();
  void note(const Correctness& found);

  Rig& rig_;
  const worker::CompareRequest& request_;
  Rig::Clock::time_point& rested_at_;
  TimingMode mode_;
  std::optional<Baseline> baseline_;
  std::vector<Subject> subjects_;   // those that are timed
  std::vector<std::size_t> sides_;  // which of the reply each of them is
  worker::CompareReply reply_;
};

}  // namespace autotune::gpu

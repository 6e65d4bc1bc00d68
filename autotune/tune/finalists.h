// From what was measured to one winner: the best are timed again, in interleaved rounds.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "autotune/tune/tuner.h"
#include "autotune/worker/messages.h"
#include "kernels/trial.h"

namespace autotune::tune {

struct Standing {
  std::size_t winner = 0;             // index into the trials
  double lead_percent = 0;            // over the second; 0 where there is none
  bool tie = false;                   // another finalist is as good: see settle()
  std::vector<std::size_t> leaders;   // of the last look, the fastest first
  std::set<std::size_t> timed_again;  // their measurements are now those of their last look
};

// How a look is taken: so many rounds, in which each trial has its turn, and more where those leave
// a ratio uncertain.
struct Look {
  int rounds;
  int most_rounds;
};

// Times trials in interleaved rounds; nullopt where that is not possible (no time left, a lost
// worker), and what was measured before decides.
using Looking = std::function<Expected<std::optional<worker::CompareReply>>(
    const std::vector<const Trial*>& trials, Look look)>;

// `trials` are all ok and not empty, and timed in that mode; `default_index` is where the default
// config is, if it worked, and `former_index` the winner of an earlier run: both take part up
// to 1.3 times the second's time. Up to three looks, each at those that the one before could not
// tell apart. Of those within 0.2 %, or 0.1 us and 0.4 %, the winner of an earlier run stays, and
// else the one wins that the plan ranks first, so that two runs which found others among equals
// choose alike. The default config is only beaten by what was no slower when the two were last
// timed. Errors are those of `looking`.
Expected<Standing> settle(std::vector<Trial>& trials, TimingMode mode,
                          std::optional<std::size_t> default_index,
                          std::optional<std::size_t> former_index, const Looking& looking);

// The request of a look, but for its contenders.
worker::CompareRequest look_request(const Problem& problem, const TuneOptions& options, Look look);

}  // namespace autotune::tune

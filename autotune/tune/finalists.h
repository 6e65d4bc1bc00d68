// From what was measured to one winner: the best few are timed again in interleaved pairs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "autotune/worker/messages.h"
#include "kernels/trial.h"

namespace autotune::tune {

struct Standing {
  std::size_t winner = 0;             // index into the trials
  double lead_percent = 0;            // over the second; 0 where there is none
  bool tie = false;                   // within the noise of another finalist
  std::set<std::size_t> timed_again;  // their measurements are now those of their last pairing
};

// Interleaved pairs of launches: so many, and more where those leave the ratio uncertain.
struct Pairs {
  int least;
  int most;
};

// Times two trials in interleaved pairs; nullopt where that is not possible (no time left,
// a lost worker), and what was measured before decides.
using Pairing = std::function<Expected<std::optional<worker::CompareReply>>(
    const Trial& a, const Trial& b, Pairs pairs)>;

// `trials` are all ok and not empty; `default_index` is where the default config is, if it worked,
// and `former_index` the winner of an earlier run: both take part wherever they stand.
// Within 0.2 % the one with fewer resources wins. The default config is only beaten by what was no
// slower when the two were last timed. Errors are those of `pairing`.
Expected<Standing> settle(std::vector<Trial>& trials, std::optional<std::size_t> default_index,
                          std::optional<std::size_t> former_index, const Pairing& pairing);

// Shared memory first, then registers of all threads, then workspace.
bool fewer_resources(const Trial& a, const Trial& b);

}  // namespace autotune::tune

// The end of tuning a problem that takes several kernels: which of the stages' best go together.
#pragma once

#include <vector>

#include "autotune/tune/session.h"

namespace autotune::tune {

// The stages' finalists with each other, measured together and checked as a whole; the winner is
// stored for the whole problem. Errors: failed (no pair worked), those of the workers.
Expected<TuneResult> join_stages(const SessionTools& tools, const Problem& problem,
                                 const std::vector<TuneResult>& stages, cache::Store* store);

}  // namespace autotune::tune

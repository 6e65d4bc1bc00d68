// An answer for a problem that nobody tuned: from winners of problems like it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune/lookup/answer.h"

namespace autotune::lookup {

// A config that runs on this device for this problem. What won on this very device needs only to
// fit; what comes from another must also not be expected to run badly here.
std::optional<Config> usable(const std::string& text, const Problem& problem,
                             const DeviceSpec& device, search::Limits limits, Where where);

// Its code, for one problem or another, may be in a cache or bundle.
bool may_have_code(const Guess& guess);

BestConfig as_answer(const Problem& problem, const DeviceSpec& device, const Config& config,
                     Match match);

// The few nearest winners of this device that fit, then the nearest of its siblings; else one of
// another device. Empty where nothing like the problem was tuned. Their order never depends on the
// order of rows.
std::vector<Guess> nearest_winners(const Problem& problem, const DeviceSpec& device,
                                   const Sources& sources, Recollection& recollection,
                                   const search::Limits& limits);

// Of the configs that won nearby, and of the performance model's own choice for this problem, the
// one that the model, corrected by what this device measured nearby, expects to be fastest. A
// sibling's counts where it is nearer than any of this device, or of this very problem; then the
// model's choice must promise far more, and of this device's only nearer ones count. With
// bounds.tuned_only, and where the next rung of a ladder of m is in a cache or bundle, only what
// won here and is in these counts, where there is any: that needs no search, and may need no
// compiler. Errors: nothing_fits, where `guesses` is empty.
Expected<BestConfig> choose(const Problem& problem, const DeviceSpec& device,
                            const std::vector<Guess>& guesses, const Bounds& bounds);

}  // namespace autotune::lookup

// How far one problem is from another.
#pragma once

#include <optional>

#include "autotune/types.h"

namespace autotune::lookup {

// Beyond a factor of 16 in all dimensions together a winner says little about another problem, and
// the performance model's choice is the better guess.
inline constexpr double kFarthest = 4.0;

// The sum over m, n and k of |log2(a / b)|: 0 for the same dimensions, 1 for one doubled; and 1 for
// each of another timing mode, C read by one of them only, exact_fp32 asked for by one only,
// another activation, and other alignments, for which another config may be best. nullopt where the
// two are not comparable: another family, dtype, output dtype or layout.
std::optional<double> distance(const Problem& a, const Problem& b);

}  // namespace autotune::lookup

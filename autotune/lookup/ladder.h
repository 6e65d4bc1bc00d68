// Problems whose m is only known at run time, such as a number of tokens: a ladder of m is tuned,
// and the next rung above serves what lies between.
#pragma once

#include <cstdint>
#include <vector>

#include "autotune/types.h"

namespace autotune::lookup {

// `first`, `last`, and between them the powers of two and, from 32 on, the numbers halfway between
// those; ascending. 1 <= first <= last.
std::vector<std::int64_t> ladder(std::int64_t first, std::int64_t last);

// Whether `tuned` may be the rung that serves `problem`: the same but for m, which is as large or
// larger, and at most twice as large.
bool is_rung_above(const Problem& tuned, const Problem& problem);

}  // namespace autotune::lookup

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

// Whether `tuned` serves `problem` as a rung: the same but for m, which is at least problem's and
// at most that of the next rung that any ladder has there.
bool is_rung_above(const Problem& tuned, const Problem& problem);

}  // namespace autotune::lookup

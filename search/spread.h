// Which survivors to measure so that they stand for the whole space: for data that strategies are
// judged on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/plan.h"

namespace autotune::search {

// Indices of up to `count` survivors, the default config first, the rest by turns from each kernel
// and, within it, from each tile shape; of these at most two of one compiled code, which then
// differ in run-time parameters. Every first part of the list is spread just so. Deterministic for
// a seed; which codes are drawn hardly depends on the problem, so problems share them.
std::vector<std::size_t> draw_spread(const Plan& plan, std::size_t count, std::uint64_t seed);

}  // namespace autotune::search

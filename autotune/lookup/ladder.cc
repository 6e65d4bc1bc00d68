#include "autotune/lookup/ladder.h"

#include "autotune/lookup/distance.h"

namespace autotune::lookup {
namespace {

// Below, a step of a half changes no tile: the smallest are 16 rows.
constexpr std::int64_t kHalfwayFrom = 32;

}  // namespace

std::vector<std::int64_t> ladder(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> rungs{first};
  const auto add = [&](std::int64_t m) {
    if (m > first && m < last) rungs.push_back(m);
  };
  for (std::int64_t power = 1; power < last; power *= 2) {
    add(power);
    if (power >= kHalfwayFrom) add(power + power / 2);
  }
  if (last > first) rungs.push_back(last);
  return rungs;
}

bool is_rung_above(const Problem& tuned, const Problem& problem) {
  if (tuned.m < problem.m || tuned.m > 2 * problem.m) return false;
  Problem there = tuned;
  there.m = problem.m;
  // What differs besides the dimensions adds to the distance.
  const auto beside_m = distance(there, problem);
  return beside_m && *beside_m == 0 && distance(tuned, problem) <= 1.0;
}

}  // namespace autotune::lookup

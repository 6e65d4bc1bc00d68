#include "autotune/lookup/ladder.h"

#include "autotune/lookup/distance.h"

namespace autotune::lookup {
namespace {

// Below, a step of a half changes no tile: the smallest are 16 rows.
constexpr std::int64_t kHalfwayFrom = 32;

// The least rung of all that is not below m.
std::int64_t next_rung(std::int64_t m) {
  std::int64_t power = 1;
  while (power < m) power *= 2;
  const std::int64_t halfway = power / 2 + power / 4;
  return power / 2 >= kHalfwayFrom && halfway >= m ? halfway : power;
}

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
  if (tuned.m < problem.m || tuned.m > next_rung(problem.m)) return false;
  Problem there = tuned;
  there.m = problem.m;
  // What differs besides m is in the distance.
  return distance(there, problem) == 0.0 && distance(tuned, problem) <= 1.0;
}

}  // namespace autotune::lookup

// Which of several ways to compute the same is the fastest, by few launches.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "autotune/types.h"

namespace autotune::gpu {

struct Ways {
  std::size_t count = 0;
  int runs = 1;  // launches that a sample is the mean of, at most
  // One sample of each of some ways, in this order: microseconds per launch. At most
  // Timer::kMostAtOnce are asked for at once.
  std::function<Expected<std::vector<double>>(std::span<const std::size_t>)> sample;
  std::function<bool()> lost;  // behind an error: nothing can be launched any more
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

struct Fastest {
  std::vector<std::size_t> level;  // those that may be the fastest, as it came out, best first
  std::size_t timed = 0;           // those that could be timed
};

// A way that does not run is passed over. Only a lost GPU is an error.
Expected<Fastest> choose_fastest(const Ways& ways);

}  // namespace autotune::gpu

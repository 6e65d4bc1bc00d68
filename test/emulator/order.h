// What happened before what: of everything that other warps did, how much a warp has heard of by
// way of barriers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace autotune::emulator {

// For each warp of the launch, up to which of its times; and behind them all, for the launch ahead,
// whether it has ended (1) or may still be at work (0).
using Clocks = std::vector<std::uint32_t>;

inline void hear(Clocks& clocks, const Clocks& others) {
  if (clocks.size() < others.size()) clocks.resize(others.size());
  for (std::size_t w = 0; w < others.size(); ++w) clocks[w] = std::max(clocks[w], others[w]);
}

// Who touches memory: a thread of the block, in a warp of the launch, which has heard so much. Its
// own entry is its time.
struct Actor {
  int thread;
  std::uint16_t warp;
  const Clocks* clocks;

  std::uint32_t time() const { return (*clocks)[warp]; }
  bool behind_launch() const { return clocks->back() != 0; }
};

// Something that a warp did.
struct Event {
  std::uint32_t time = 0;  // 0: nothing
  std::uint16_t warp = 0;

  bool known_to(const Actor& actor) const { return time <= (*actor.clocks)[warp]; }
};

}  // namespace autotune::emulator

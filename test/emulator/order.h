// What happened before what: of all that warps did and barriers counted, how much a warp has heard
// of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace autotune::emulator {

// Up to which of its times each source of events is heard of. Sources are the launch ahead, whose
// only time is its end, then the warps of the launch, then its transaction barriers as they are set
// up, whose times are that and the ends of their phases.
using Clocks = std::vector<std::uint32_t>;
inline constexpr std::size_t kLaunchAhead = 0;
inline constexpr std::size_t kWarp = 32;

inline std::uint32_t heard(const Clocks& clocks, std::size_t source) {
  return source < clocks.size() ? clocks[source] : 0;
}

// `from`: the first source that is heard of.
inline void hear(Clocks& clocks, const Clocks& others, std::size_t from = 0) {
  if (clocks.size() < others.size()) clocks.resize(others.size());
  for (std::size_t s = from; s < others.size(); ++s) clocks[s] = std::max(clocks[s], others[s]);
}

// Who touches memory: a thread of the block, in a warp which has heard so much. Its own entry is
// its time.
struct Actor {
  int thread;
  std::uint32_t warp;  // as a source
  const Clocks* clocks;

  std::uint32_t time() const { return (*clocks)[warp]; }
  // Its number among all threads of the launch.
  std::size_t of_launch() const { return warp * kWarp + static_cast<std::size_t>(thread) % kWarp; }
  bool behind_launch() const { return (*clocks)[kLaunchAhead] != 0; }
};

struct Event {
  std::uint32_t time = 0;  // 0: nothing happened
  std::uint32_t source = 0;

  bool known_to(const Actor& actor) const { return time <= heard(*actor.clocks, source); }
};

}  // namespace autotune::emulator

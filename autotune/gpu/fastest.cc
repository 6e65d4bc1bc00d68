#include "autotune/gpu/fastest.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "autotune/gpu/rounds.h"
#include "autotune/gpu/statistics.h"
#include "autotune/gpu/timer.h"
#include "autotune/gpu/warmth.h"

namespace autotune::gpu {
namespace {

// Ways that took more than kFar times as long as the fastest in one launch are out of it. The
// others take turns, on a GPU that is warm where launches are long, for the clock falls under load,
// and whoever came first would win: of cuBLAS's kernels for 8192^3, level on a GPU that has idled,
// one is 3 % ahead on a warm one. First kFirstRounds rounds of all; then, of those that are not
// further behind than kClose, rounds that take kTurnsUs in all, within bounds.
constexpr double kFar = 3;
constexpr std::size_t kFirstRounds = 5;
constexpr double kClose = 1.08;
// Behind those turns: level with the fastest, `most` at most. Among launches of kLongChoiceUs the
// order changes most with the clock.
struct Level {
  double within;
  std::size_t most;
};
constexpr Level kLevel{1.02, 4};
constexpr Level kLevelOfLong{1.05, 8};
constexpr double kLongChoiceUs = 300;
constexpr double kTurnsUs = 150'000;
constexpr int kLeastRounds = 6;
constexpr int kMostRounds = 24;

class Choice {
 public:
  explicit Choice(const Ways& ways)
      : ways_(ways), us_(ways.count, std::numeric_limits<double>::infinity()) {}

  Expected<Fastest> run() {
    for (std::size_t i = 0; i < ways_.count; ++i) {
      if (auto state = launch_once(i); !state) return tl::unexpected(state.error());
    }
    fastest_.timed = fastest_.level.size();
    if (fastest_.level.empty()) return fastest_;
    leave(kFar);
    auto state = take_turns(kFirstRounds, kWarmUpS);
    if (!state) return tl::unexpected(state.error());
    leave(kClose);
    const int rounds = std::clamp(static_cast<int>(kTurnsUs / (round_us() * ways_.runs)),
                                  kLeastRounds, kMostRounds);
    state = take_turns(static_cast<std::size_t>(rounds), 0);  // the GPU is warm
    if (!state) return tl::unexpected(state.error());
    const Level level = us_[fastest_.level.front()] > kLongChoiceUs ? kLevelOfLong : kLevel;
    leave(level.within);
    fastest_.level.resize(std::min(fastest_.level.size(), level.most));
    return fastest_;
  }

 private:
  Expected<void> launch_once(std::size_t way) {
    const auto time = ways_.sample({&way, 1});
    if (!time)
      return ways_.lost() ? Expected<void>(tl::unexpected(time.error())) : Expected<void>{};
    us_[way] = time->front();
    fastest_.level.push_back(way);
    return {};
  }

  // Turns that one of the ways spoils are left out: what is known then decides.
  Expected<void> take_turns(std::size_t count, double warm_up_s) {
    const std::vector<std::size_t>& some = fastest_.level;
    if (some.size() < 2) return {};
    Rounds rounds(some.size(), {count, count, 0, ways_.runs, warm_up_s});
    const auto start = ways_.now();
    while (true) {
      const std::vector<std::size_t> turn = rounds.next(Timer::kMostAtOnce, ways_.now() - start);
      if (turn.empty()) break;
      const auto taken =
          take_samples(rounds, turn, Timer::kMostAtOnce, [&](std::span<const std::size_t> now) {
            std::vector<std::size_t> order;
            for (const std::size_t i : now) order.push_back(some[i]);
            return ways_.sample(order);
          });
      if (taken) continue;
      return ways_.lost() ? Expected<void>(tl::unexpected(taken.error())) : Expected<void>{};
    }
    for (std::size_t i = 0; i < some.size(); ++i) us_[some[i]] = median(rounds.samples(i));
    return {};
  }

  // Those that take at most so many times the fastest's time, the fastest first.
  void leave(double within) {
    std::vector<std::size_t>& level = fastest_.level;
    std::stable_sort(level.begin(), level.end(),
                     [this](std::size_t a, std::size_t b) { return us_[a] < us_[b]; });
    while (us_[level.back()] > us_[level.front()] * within) level.pop_back();
  }

  double round_us() const {
    return std::accumulate(fastest_.level.begin(), fastest_.level.end(), 0.0,
                           [this](double sum, std::size_t i) { return sum + us_[i]; });
  }

  const Ways& ways_;
  std::vector<double> us_;
  Fastest fastest_;
};

}  // namespace

Expected<Fastest> choose_fastest(const Ways& ways) { return Choice(ways).run(); }

}  // namespace autotune::gpu

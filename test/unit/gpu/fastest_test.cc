#include "autotune/gpu/fastest.h"

#include <algorithm>

#include "autotune/gpu/warmth.h"
#include "test/support/catch.h"

namespace autotune::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using Chosen = std::vector<std::size_t>;

// What a launch of each way takes on a GPU that has been busy for less than a tenth of a second,
// and on one that is held back by its power limit since.
struct Gpu {
  std::vector<double> cool;
  std::vector<double> warm;
  std::vector<std::size_t> broken = {};  // do not run, from their launch breaks_at on
  int breaks_at = 0;
  bool lost = false;
  int runs = 1;  // launches that a sample is the mean of
  double busy_us = 0;
  std::vector<int> launches = std::vector<int>(cool.size(), 0);

  Expected<Fastest> choose() {
    Ways ways;
    ways.count = cool.size();
    ways.runs = runs;
    ways.sample = [this](std::span<const std::size_t> some) -> Expected<std::vector<double>> {
      std::vector<double> times;
      for (const std::size_t i : some) {
        const bool breaks = std::find(broken.begin(), broken.end(), i) != broken.end();
        if (breaks && launches[i] >= breaks_at) {
          return fail(ErrorCode::failed, "this one does not run");
        }
        times.push_back(busy_us < 100'000 ? cool[i] : warm[i]);
        busy_us += times.back() * runs;
        ++launches[i];
      }
      return times;
    };
    ways.lost = [this] { return lost; };
    ways.now = [this] {
      return Clock::time_point{} + std::chrono::microseconds(static_cast<long>(busy_us));
    };
    return choose_fastest(ways);
  }
};

}  // namespace

TEST_CASE("of ways that are level on a cool GPU the one that is ahead on a warm one is found") {
  // As cuBLAS's for 8192^3: who is asked late, when the clock has fallen, must not be out. With as
  // many ways as these, the last would be if each were asked a few times in a row.
  constexpr std::size_t kWays = 18;
  for (std::size_t ahead = 0; ahead < kWays; ++ahead) {
    Gpu gpu{std::vector<double>(kWays, 1380), std::vector<double>(kWays, 1640)};
    gpu.warm[ahead] = 1590;
    const auto chosen = gpu.choose();
    REQUIRE(chosen);
    CHECK(chosen->timed == kWays);
    CHECK(chosen->level.front() == ahead);
    CHECK(chosen->level.size() == 8);  // the others are as close as may be, but eight are enough
  }
}

TEST_CASE("what is behind on a cool GPU and ahead on a warm one is found") {
  for (std::size_t ahead = 0; ahead < 4; ++ahead) {
    Gpu gpu{std::vector<double>(4, 1380), std::vector<double>(4, 1640)};
    gpu.cool[ahead] = 1520;
    gpu.warm[ahead] = 1590;
    const auto chosen = gpu.choose();
    REQUIRE(chosen);
    CHECK(chosen->level.front() == ahead);
  }
}

TEST_CASE("short launches are not warmed up, and few of them are taken") {
  Gpu gpu{{10.5, 10, 14, 10.1}, {10.5, 10, 14, 10.1}};
  const auto chosen = gpu.choose();
  REQUIRE(chosen);
  CHECK(chosen->level == Chosen{1, 3});
  CHECK(gpu.launches[1] < 60);
  CHECK(gpu.launches[2] < gpu.launches[1]);
}

TEST_CASE("samples of many launches are fewer") {
  Gpu single{{1400, 1401}, {1400, 1401}};
  Gpu graphs = single;
  graphs.runs = 10;
  REQUIRE(single.choose());
  REQUIRE(graphs.choose());
  CHECK(graphs.busy_us < 1e6);
  CHECK(graphs.launches[0] < single.launches[0] / 2);
}

TEST_CASE("who is far behind at once is launched no more") {
  Gpu gpu{{100, 1000, 101}, {100, 1000, 101}};
  const auto chosen = gpu.choose();
  REQUIRE(chosen);
  CHECK(chosen->level == Chosen{0, 2});
  CHECK(gpu.launches[1] == 1);
}

TEST_CASE("a way that does not run is passed over, a lost GPU is an error") {
  Gpu gpu{{10, 9, 11}, {10, 9, 11}, {1}};
  auto chosen = gpu.choose();
  REQUIRE(chosen);
  CHECK(chosen->timed == 2);
  CHECK(chosen->level == Chosen{0});
  gpu.lost = true;
  CHECK_FALSE(gpu.choose());

  Gpu late{{10, 9, 11}, {10, 9, 11}, {0}, 1};  // what is known from before it broke decides
  chosen = late.choose();
  REQUIRE(chosen);
  CHECK(chosen->timed == 3);
  CHECK(chosen->level == Chosen{1});
  late.lost = true;
  CHECK_FALSE(late.choose());
  Gpu gone{{10, 9, 11}, {10, 9, 11}, {0}, 1, true};  // in the midst of the turns
  CHECK_FALSE(gone.choose());
  CHECK(gone.launches[0] == 1);

  Gpu none{{10, 9}, {10, 9}, {0, 1}};
  chosen = none.choose();
  REQUIRE(chosen);
  CHECK(chosen->timed == 0);
  CHECK(chosen->level.empty());
}

}  // namespace autotune::gpu

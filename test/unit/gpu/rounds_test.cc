#include "autotune/gpu/rounds.h"

#include "test/support/catch.h"

namespace {

using autotune::gpu::RoundRule;
using autotune::gpu::Rounds;
using autotune::gpu::take_samples;
using Seconds = std::chrono::duration<double>;
using Sides = std::vector<std::size_t>;

// What a comparison of `sides` takes where launch i of a side lasts us(side, i).
template <class Us>
Rounds run(std::size_t sides, const RoundRule& rule, Us us) {
  Rounds rounds(sides, rule);
  for (Sides next; !(next = rounds.next(16, Seconds(0))).empty();) {
    std::vector<double> times;
    std::vector<std::size_t> taken(sides);
    for (std::size_t side = 0; side < sides; ++side) taken[side] = rounds.samples(side).size();
    for (const std::size_t side : next) times.push_back(us(side, taken[side]++));
    rounds.take(next, times);
  }
  return rounds;
}

// Alternates by a tenth around `us`.
double noisy(double us, std::size_t i) { return us * (i % 2 == 0 ? 1 : 1.1); }

TEST_CASE("sides are launched by turns and in turned order") {
  Rounds two(2, RoundRule{4, 4, 0});
  CHECK(two.next(16, Seconds(0)) == Sides{0, 1, 1, 0, 0, 1, 1, 0});
  Rounds three(3, RoundRule{4, 4, 0});
  CHECK(three.next(11, Seconds(0)) == Sides{0, 1, 2, 2, 0, 1, 1, 2, 0});
}

TEST_CASE("turns go on where a burst takes a single round") {
  Rounds rounds(12, RoundRule{3, 3, 0});
  std::vector<std::size_t> firsts;
  for (Sides sides; !(sides = rounds.next(16, Seconds(0))).empty();) {
    REQUIRE(sides.size() == 12);
    firsts.push_back(sides.front());
    rounds.take(sides, std::vector<double>(12, 1.0));
  }
  CHECK(firsts == Sides{0, 11, 10});
}

TEST_CASE("sides are launched a few at once, and a failure ends that") {
  using Times = tl::expected<std::vector<double>, int>;
  Rounds rounds(3, RoundRule{2, 2, 0});
  std::vector<Sides> launched;
  const auto sample = [&](std::span<const std::size_t> some) -> Times {
    launched.emplace_back(some.begin(), some.end());
    std::vector<double> times;
    for (const std::size_t side : some) times.push_back(10.0 * static_cast<double>(side));
    return times;
  };
  REQUIRE(take_samples(rounds, rounds.next(6, Seconds(0)), 4, sample));
  CHECK(launched == std::vector<Sides>{{0, 1, 2, 2}, {0, 1}});
  CHECK(rounds.samples(2) == std::vector<double>{20, 20});
  CHECK(rounds.samples(1) == std::vector<double>{10, 10});

  int left = 1;
  const auto failing = [&](std::span<const std::size_t> some) -> Times {
    if (left-- == 0) return tl::unexpected(7);
    return sample(some);
  };
  Rounds again(3, RoundRule{2, 2, 0});
  const auto taken = take_samples(again, again.next(6, Seconds(0)), 4, failing);
  REQUIRE_FALSE(taken);
  CHECK(taken.error() == 7);
  CHECK(again.samples(2).size() == 2);
}

TEST_CASE("a round is never cut") {
  Rounds rounds(5, RoundRule{2, 2, 0});
  CHECK(rounds.next(3, Seconds(0)) == Sides{0, 1, 2, 3, 4});
}

TEST_CASE("a ratio that is certain ends the comparison, one that is not goes on") {
  const auto steady = [](std::size_t side, std::size_t) { return side == 0 ? 10 : 12; };
  for (const std::size_t sides : {2, 3}) {
    const Rounds rounds = run(sides, {30, 240, 0}, steady);
    for (std::size_t side = 0; side < sides; ++side) CHECK(rounds.samples(side).size() == 30);
    CHECK(rounds.ratio(0).median == 1);
    CHECK(rounds.ratio(sides - 1).median == 1.2);
  }
  const auto last_wavers = [](std::size_t sides) {
    return
        [sides](std::size_t side, std::size_t i) { return side + 1 < sides ? 10 : noisy(12, i); };
  };
  CHECK(run(3, {30, 240, 0}, last_wavers(3)).samples(1).size() == 240);
  CHECK(run(2, {30, 240, 0}, last_wavers(2)).samples(1).size() == 240);
  CHECK(run(2, {30, 30, 0}, last_wavers(2)).samples(1).size() == 30);
  CHECK(run(2, {5, 5, 0}, last_wavers(2)).samples(1).size() == 5);
  // Certain to 0.3 % either way.
  const auto by = [](double share) {
    return [share](std::size_t side, std::size_t i) {
      return side == 1 && i % 2 == 1 ? 10 * (1 + share) : 10;
    };
  };
  CHECK(run(2, {30, 240, 0}, by(0.005)).samples(1).size() == 30);
  CHECK(run(2, {30, 240, 0}, by(0.007)).samples(1).size() == 240);
}

TEST_CASE("one side alone is certain of itself") {
  CHECK(run(1, {30, 240, 0}, [](std::size_t, std::size_t i) { return noisy(10, i); })
            .samples(0)
            .size() == 30);
}

TEST_CASE("an uncertain ratio is given up after half a second of each side") {
  const auto wavering = [](std::size_t side, std::size_t i) {
    return side == 0 ? 10'000 : noisy(10'000, i);
  };
  // Sixteen launches at a time, ten milliseconds each.
  CHECK(run(2, {30, 240, 0}, wavering).samples(1).size() == 54);
  CHECK(run(2, {60, 240, 0}, wavering).samples(1).size() == 60);
}

TEST_CASE("samples of many launches count with all of them") {
  const auto uncertain = [](std::size_t side, std::size_t i) {
    return side == 0 ? 1500.0 : noisy(1500, i);
  };
  const std::size_t of_one = run(2, {30, 800, 0}, uncertain).samples(0).size();
  CHECK(of_one > 300);
  CHECK(run(2, {30, 800, 0, 10}, uncertain).samples(0).size() < of_one / 8);
}

TEST_CASE("long launches warm up for a while, one round at a time, and that is forgotten") {
  Rounds rounds(2, RoundRule{3, 3, 0, 1, 0.4});
  for (const double spent : {0.0, 0.1, 0.39}) {
    const Sides sides = rounds.next(16, Seconds(spent));
    REQUIRE(sides.size() == 2);
    rounds.take(sides, std::vector<double>(2, 4500));
  }
  const Sides sides = rounds.next(16, Seconds(0.4));
  REQUIRE(sides.size() == 6);
  rounds.take(sides, std::vector<double>(6, 5000));
  CHECK(rounds.next(16, Seconds(0.5)).empty());
  CHECK(rounds.samples(1) == std::vector<double>(3, 5000));
}

TEST_CASE("short launches without a pause warm up as well") {
  Rounds rounds(2, RoundRule{3, 3, 0, 10, 0.4});
  rounds.take(rounds.next(16, Seconds(0)), std::vector<double>(2, 20));
  CHECK(rounds.next(16, Seconds(0.1)).size() == 2);
}

TEST_CASE("short launches count from the first on") {
  Rounds rounds(2, RoundRule{3, 3, 0, 1, 0.4});
  rounds.take(rounds.next(16, Seconds(0)), std::vector<double>(2, 12));
  const Sides sides = rounds.next(16, Seconds(0.1));
  REQUIRE(sides.size() == 4);
  rounds.take(sides, std::vector<double>(4, 100));  // a clock that sinks changes nothing
  CHECK(rounds.next(16, Seconds(0.5)).empty());
  CHECK(rounds.samples(0) == std::vector<double>{12, 100, 100});
}

TEST_CASE("a sustained comparison ends by time and forgets how it warmed up") {
  Rounds rounds(2, RoundRule{30, 30, 2});
  Sides sides = rounds.next(16, Seconds(0.1));
  REQUIRE(sides.size() == 16);
  rounds.take(sides, std::vector<double>(16, 1.0));
  sides = rounds.next(16, Seconds(0.6));
  CHECK(rounds.samples(0).empty());
  rounds.take(sides, std::vector<double>(16, 2.0));
  sides = rounds.next(16, Seconds(1.9));  // nothing is forgotten twice
  rounds.take(sides, std::vector<double>(16, 2.0));
  CHECK(rounds.next(16, Seconds(2.0)).empty());
  CHECK(rounds.samples(0) == std::vector<double>(16, 2.0));
}

}  // namespace

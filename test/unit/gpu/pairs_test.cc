#include "autotune/gpu/pairs.h"

#include "test/support/catch.h"

namespace {

using autotune::gpu::PairRule;
using autotune::gpu::Pairs;
using Seconds = std::chrono::duration<double>;

// What a comparison takes where launch i of a side lasts us(side, i).
template <class Us>
Pairs run(const PairRule& rule, Us us) {
  Pairs pairs(rule);
  for (std::vector<int> sides; !(sides = pairs.next(16, Seconds(0))).empty();) {
    std::vector<double> times;
    std::array<std::size_t, 2> taken{pairs.samples(0).size(), pairs.samples(1).size()};
    for (const int side : sides) times.push_back(us(side, taken[std::size_t(side)]++));
    pairs.take(sides, times);
  }
  return pairs;
}

// Alternates by a tenth around `us`.
double noisy(double us, std::size_t i) { return us * (i % 2 == 0 ? 1 : 1.1); }

TEST_CASE("pairs are launched by turns and in turned order") {
  Pairs pairs(PairRule{4, 4, 0});
  CHECK(pairs.next(16, Seconds(0)) == std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0});
}

TEST_CASE("a ratio that is certain ends the comparison, one that is not goes on") {
  const Pairs steady = run({30, 240, 0}, [](int side, std::size_t) { return side == 0 ? 10 : 12; });
  CHECK(steady.samples(0).size() == 30);
  CHECK(steady.samples(1).size() == 30);
  CHECK(steady.ratio().median == 1.2);

  const auto wavering = [](int side, std::size_t i) { return side == 0 ? 10 : noisy(12, i); };
  CHECK(run({30, 240, 0}, wavering).samples(1).size() == 240);
  CHECK(run({30, 30, 0}, wavering).samples(1).size() == 30);
  CHECK(run({5, 5, 0}, wavering).samples(1).size() == 5);
}

TEST_CASE("long launches are not taken more often than asked") {
  const auto wavering = [](int side, std::size_t i) { return side == 0 ? 1000 : noisy(1200, i); };
  CHECK(run({30, 240, 0}, wavering).samples(1).size() == 30);
}

TEST_CASE("a sustained comparison ends by time and forgets how it warmed up") {
  Pairs pairs(PairRule{30, 30, 2});
  std::vector<int> sides = pairs.next(16, Seconds(0.1));
  REQUIRE(sides.size() == 16);
  pairs.take(sides, std::vector<double>(16, 1.0));
  sides = pairs.next(16, Seconds(0.6));
  CHECK(pairs.samples(0).empty());
  pairs.take(sides, std::vector<double>(16, 2.0));
  CHECK(pairs.next(16, Seconds(2.0)).empty());
  CHECK(pairs.samples(0) == std::vector<double>(8, 2.0));
}

}  // namespace

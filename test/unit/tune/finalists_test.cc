// Who wins the final, and what is said of it.
#include <algorithm>
#include <set>

#include "test/unit/tune/looks.h"

namespace autotune::tune {

TEST_CASE("one clear leader is timed again beside the second, once") {
  std::vector<Trial> trials{trial(20, 1), trial(10, 9), trial(12, 2)};
  std::vector<Looked> looks;
  const auto standing =
      settle(trials, TimingMode::cold, 0, kNone, says({{{9, 10}, {2, 12}}}, &looks));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK_FALSE(standing->tie);
  CHECK(standing->lead_percent == Approx(20));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem == std::vector<std::int64_t>{9, 2});
}

TEST_CASE("a look overrules what was measured before") {
  std::vector<Trial> trials{trial(10, 1), trial(10.1, 9)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone, says({{{1, 10.4}, {9, 10.0}}}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK(trials[1].measurement.median_us == 10.0);
  CHECK(trials[0].measurement.median_us == 10.4);
  CHECK(standing->lead_percent == Approx(4));
  CHECK(standing->timed_again == std::set<std::size_t>{0, 1});
}

TEST_CASE("a tie goes to fewer resources and is said to be one") {
  std::vector<Trial> trials{trial(10, 9), trial(10.1, 1)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone, says({{{9, 10}, {1, 10.01}}, 0.01}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK(standing->tie);
}

TEST_CASE("among equals the winner of an earlier run stays") {
  const Looking looking = says({{{9, 10.00}, {5, 10.01}, {7, 10.01}, {3, 10.2}}});
  for (const std::size_t former : {0, 1, 2, 3}) {
    CAPTURE(former);
    std::vector<Trial> trials{trial(10, 9), trial(10.01, 5), trial(10.01, 7), trial(10.2, 3)};
    const auto standing = settle(trials, TimingMode::cold, kNone, former, looking);
    REQUIRE(standing);
    CHECK(standing->tie);
    CHECK(standing->winner == (former < 3 ? former : 1));
  }
}

TEST_CASE("a tie by more than 0.2 % goes to the faster one") {
  for (const double challenger : {1003, 997}) {
    std::vector<Trial> trials{trial(1000, 5), trial(1010, challenger > 1000 ? 1 : 9)};
    const auto standing = settle(trials, TimingMode::cold, kNone, kNone,
                                 says({{{5, 1000}, {1, challenger}, {9, challenger}}, 0.01}));
    REQUIRE(standing);
    CHECK(standing->winner == (challenger > 1000 ? 0u : 1u));
    CHECK(standing->tie);
  }
}

TEST_CASE("a tenth of a microsecond is a tie, which the prediction breaks, but no whole percent") {
  for (const double us : {26, 7}) {
    std::vector<Trial> trials{trial(us, 1), trial(us, 2), trial(us, 3)};
    trials[0].predicted_us = 6.2;
    trials[1].predicted_us = 6.1;
    trials[2].predicted_us = 6.0;
    // Far beyond what an interval allows, and the third too far for a tie.
    const auto standing = settle(trials, TimingMode::cold, kNone, kNone,
                                 says({{{1, us}, {2, us + 0.08}, {3, us + 0.12}}, 0.001}));
    REQUIRE(standing);
    CHECK(standing->winner == (us == 26 ? 1u : 0u));
    CHECK(standing->tie == (us == 26));
  }
}

TEST_CASE("whoever wins ties is timed again, however many are as good") {
  std::vector<Trial> trials;
  Said said;
  said.width = 0.0001;
  for (int i = 1; i <= 8; ++i) {
    trials.push_back(trial(10, i, 16 * i));
    trials.back().predicted_us = 10 - i;
    said.us[i] = 10 + 0.005 * i;
  }
  std::vector<Looked> looks;
  const auto standing = settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks));
  REQUIRE(standing);
  CHECK(standing->winner == 7);
  REQUIRE(looks.size() == 3);
  for (const Looked& look : looks) {
    CHECK(std::find(look.smem.begin(), look.smem.end(), 8) != look.smem.end());
  }
}

TEST_CASE("the default config is not beaten by a tie that was slower") {
  for (const double challenger : {10.01, 9.99}) {
    std::vector<Trial> trials{trial(10.1, 9), trial(10, 1)};  // the default needs more
    const auto standing =
        settle(trials, TimingMode::cold, 0, kNone, says({{{1, challenger}, {9, 10.0}}, 0.01}));
    REQUIRE(standing);
    CHECK(standing->tie);
    CHECK(standing->winner == (challenger > 10 ? 0u : 1u));
    CHECK(trials[standing->winner].measurement.median_us <= trials[0].measurement.median_us);
  }
}

TEST_CASE("the default is timed beside the winner to the end") {
  std::vector<Trial> trials{trial(11.5, 5), trial(10, 1), trial(10, 2)};
  std::vector<Looked> looks;
  const auto standing = settle(trials, TimingMode::cold, 0, kNone,
                               says({{{5, 11}, {1, 10}, {2, 10.01}}, 0.0002}, &looks));
  REQUIRE(standing);
  REQUIRE(looks.size() == 3);
  for (const Looked& look : looks) CHECK(look.smem.back() == 5);
}

TEST_CASE("a finalist that fails is left behind") {
  std::vector<Trial> trials{trial(10, 1), trial(10, 7), trial(10, 2)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone, says({{{1, 10.2}, {2, 10}}}));
  REQUIRE(standing);
  CHECK(standing->winner == 2);
  CHECK(standing->timed_again == std::set<std::size_t>{0, 2});
}

TEST_CASE("a default that fails in the final does not win by the time that it had before") {
  std::vector<Trial> trials{trial(10.1, 7, 16), trial(10, 1, 32), trial(10, 2, 48)};
  const auto standing = settle(trials, TimingMode::cold, 0, kNone, says({{{1, 10.3}, {2, 10.5}}}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
}

TEST_CASE("what a look says of a finalist replaces all that was measured of it before") {
  std::vector<Trial> trials{trial(10, 1, 16), trial(10, 2, 32)};
  const auto standing = settle(trials, TimingMode::cold, kNone, kNone,
                               [](const std::vector<const Trial*>& shown,
                                  Look) -> Expected<std::optional<worker::CompareReply>> {
                                 worker::CompareReply reply;
                                 for (const Trial* trial : shown) {
                                   worker::Side& side = reply.sides.emplace_back();
                                   side.ratio = side.ratio_lo = side.ratio_hi =
                                       trial->predicted.smem_bytes == 1 ? 1.0 : 1.1;
                                   side.measurement.median_us = 10 * side.ratio;
                                   side.measurement.relative_error = 0.001;
                                   side.measurement.samples = 33;
                                   side.measurement.throttled = true;
                                 }
                                 return reply;
                               });
  REQUIRE(standing);
  for (const Trial& each : trials) {
    CHECK(each.measurement.relative_error == 0.001);
    CHECK(each.measurement.samples == 33);
    CHECK(each.measurement.throttled);
  }
}

TEST_CASE("where no look is possible the first measurement decides") {
  std::vector<Trial> trials{trial(10.1, 1), trial(10, 9)};
  const auto standing =
      settle(trials, TimingMode::cold, 0, kNone,
             [](const auto&, Look) -> Expected<std::optional<worker::CompareReply>> {
               return std::optional<worker::CompareReply>();
             });
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK_FALSE(standing->tie);
}

TEST_CASE("an error of a look ends the final") {
  std::vector<Trial> trials{trial(10.1, 1), trial(10, 9)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone,
             [](const auto&, Look) -> Expected<std::optional<worker::CompareReply>> {
               return fail(ErrorCode::no_gpu, "gone");
             });
  REQUIRE_FALSE(standing);
  CHECK(standing.error().code == ErrorCode::no_gpu);
}

}  // namespace autotune::tune

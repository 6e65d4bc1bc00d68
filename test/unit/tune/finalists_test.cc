#include "autotune/tune/finalists.h"

#include <algorithm>
#include <map>

#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune::tune {
namespace {

Trial trial(double us, std::int64_t smem, int block_n = 16, int stages = 2) {
  Trial trial;
  const std::string text =
      "mma:block_m=16,block_n=" + std::to_string(block_n) + ",stages=" + std::to_string(stages);
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  trial.config = *config;
  trial.measurement.median_us = us;
  trial.predicted.smem_bytes = smem;
  return trial;
}

// What every look says: a time for each trial, told apart by its shared memory, and intervals of
// the given half width. Each look is noted.
struct Said {
  std::map<std::int64_t, double> us;
  double width = 0.0005;
};
struct Looked {
  std::vector<std::int64_t> smem;
  Look how;
};
Looking says(Said said, std::vector<Looked>* looks = nullptr) {
  return
      [said = std::move(said), looks](const std::vector<const Trial*>& trials,
                                      Look how) -> Expected<std::optional<worker::CompareReply>> {
        Looked looked{{}, how};
        worker::CompareReply reply;
        for (const Trial* trial : trials) {
          looked.smem.push_back(trial->predicted.smem_bytes);
          worker::Side& side = reply.sides.emplace_back();
          const auto known = said.us.find(trial->predicted.smem_bytes);
          if (known == said.us.end()) {
            side.outcome = Outcome::launch_failed;
            continue;
          }
          side.measurement.median_us = known->second;
          side.ratio = known->second / said.us.at(trials.front()->predicted.smem_bytes);
          side.ratio_lo = side.ratio - said.width;
          side.ratio_hi = side.ratio + said.width;
        }
        if (looks != nullptr) looks->push_back(std::move(looked));
        return reply;
      };
}

constexpr auto kNone = std::nullopt;

}  // namespace

TEST_CASE("a single trial needs no final") {
  std::vector<Trial> trials{trial(10, 9)};
  std::vector<Looked> looks;
  const auto standing = settle(trials, TimingMode::cold, 0, kNone, says({}, &looks));
  REQUIRE(standing);
  CHECK(standing->winner == 0);
  CHECK(standing->leaders == std::vector<std::size_t>{0});
  CHECK(standing->timed_again.empty());
  CHECK(looks.empty());
}

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

TEST_CASE("who led by a mistake of one measurement is found out beside those behind it") {
  std::vector<Trial> trials{trial(15, 1), trial(10.4, 9), trial(15.2, 2), trial(17, 3)};
  std::vector<Looked> looks;
  const auto standing = settle(trials, TimingMode::cold, kNone, kNone,
                               says({{{1, 15}, {9, 15.7}, {2, 15.3}}}, &looks));
  REQUIRE(standing);
  CHECK(standing->winner == 0);
  CHECK(trials[1].measurement.median_us == 15.7);
  CHECK(standing->lead_percent == Approx(2));
  REQUIRE(!looks.empty());
  CHECK(looks[0].smem == std::vector<std::int64_t>{9, 1, 2});
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

TEST_CASE("twenty finalists, six of one tile shape and three of one code at most") {
  std::vector<Trial> trials;
  Said said;
  for (int i = 0; i < 9; ++i) trials.push_back(trial(10 + 0.01 * i, i, 16, i < 5 ? 2 : i));
  for (int i = 0; i < 30; ++i) said.us[i] = i == 0 ? 10 : 11;
  std::vector<Looked> looks;
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks)));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem == std::vector<std::int64_t>{0, 1, 2, 5, 6, 7});
  for (int i = 9; i < 29; ++i) trials.push_back(trial(10.1 + 0.01 * i, i, 16 * i));
  looks.clear();
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks)));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem.size() == 20);
}

TEST_CASE("who is more than a tenth behind the second is not in the final") {
  std::vector<Trial> trials{trial(9, 1, 16), trial(10, 2, 32), trial(10.9, 3, 48),
                            trial(11.1, 4, 64)};
  std::vector<Looked> looks;
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone,
                 says({{{1, 9}, {2, 10}, {3, 10.9}, {4, 11.1}}}, &looks)));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE(
    "of those that cannot be told apart six are left for the second look, three for the third") {
  std::vector<Trial> trials;
  Said said;
  for (int i = 1; i <= 10; ++i) {
    trials.push_back(trial(1000, i, 16 * i));
    said.us[i] = 1000;
  }
  std::vector<Looked> looks;
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks)));
  REQUIRE(looks.size() == 3);
  CHECK(looks[0].smem.size() == 10);
  CHECK(looks[1].smem.size() == 6);
  CHECK(looks[2].smem.size() == 3);
}

TEST_CASE("short launches get more rounds where their ratio stays uncertain, but not at first") {
  for (const double us : {10, 800}) {
    std::vector<Trial> trials{trial(us, 1, 16), trial(us, 2, 32)};
    std::vector<Looked> looks;
    REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says({{{1, us}, {2, us}}}, &looks)));
    REQUIRE(looks.size() == 3);
    CHECK(looks[0].how.most_rounds == looks[0].how.rounds);
    for (const Look& thorough : {looks[1].how, looks[2].how}) {
      CHECK(thorough.most_rounds == (us == 10 ? 4 : 1) * thorough.rounds);
    }
  }
}

TEST_CASE("three finalists at least, however long their launches are") {
  std::vector<Trial> trials;
  Said said;
  for (int i = 1; i <= 5; ++i) {
    trials.push_back(trial(80'000 + i, i, 16 * i));
    said.us[i] = 80'000 + 2000 * i;
  }
  std::vector<Looked> looks;
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks)));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("few finalists where launches are long, and fewer rounds") {
  std::vector<Trial> trials;
  Said said;
  for (int i = 0; i < 12; ++i) {
    trials.push_back(trial(20'000 + i, i, 16 * (i + 1)));
    said.us[i] = i == 0 ? 20'000 : 21'000;
  }
  std::vector<Looked> looks;
  REQUIRE(settle(trials, TimingMode::cold, kNone, kNone, says(said, &looks)));
  REQUIRE(looks.size() == 1);
  CHECK(looks[0].smem.size() == 5);
  CHECK(looks[0].how.rounds == 3);
}

TEST_CASE("hot, a sample is several launches, and looks take as long as cold ones") {
  for (const TimingMode mode : {TimingMode::cold, TimingMode::hot}) {
    std::vector<Trial> trials{trial(800, 1, 16), trial(800, 2, 32), trial(800, 3, 48)};
    std::vector<Looked> looks;
    REQUIRE(settle(trials, mode, kNone, kNone, says({{{1, 800}, {2, 800}, {3, 800}}}, &looks)));
    REQUIRE(looks.size() == 3);
    const int launches = worker::launches_per_sample(mode, 800);
    CHECK(launches == (mode == TimingMode::hot ? 2 : 1));
    for (const Looked& look : looks) {
      const double us = 800.0 * launches * static_cast<double>(look.smem.size());
      CHECK(look.how.most_rounds * us < 310'000);
    }
  }
  using Case = std::pair<double, int>;
  for (const auto& [us, launches] : {Case(0.1, 500), Case(10, 20), Case(100, 10), Case(200, 10),
                                     Case(500, 4), Case(1500, 2), Case(1e6, 2)}) {
    CAPTURE(us);
    CHECK(worker::launches_per_sample(TimingMode::hot, us) == launches);
  }
}

TEST_CASE("each look is at those that the one before could not tell apart") {
  // 0.1 % apart from each other, but for two.
  std::vector<Trial> trials;
  for (int i = 1; i <= 4; ++i) trials.push_back(trial(1000, i, 16, i + 1));
  std::vector<Looked> looks;
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone,
             says({{{1, 1020}, {2, 1010}, {3, 1001}, {4, 1000}}, 0.0002}, &looks));
  REQUIRE(standing);
  CHECK(standing->winner == 3);
  CHECK(standing->leaders == std::vector<std::size_t>{3, 2});
  REQUIRE(looks.size() == 3);
  CHECK(looks[0].smem == std::vector<std::int64_t>{1, 2, 3, 4});
  CHECK(looks[1].smem == std::vector<std::int64_t>{4, 3, 2});  // 2 % behind is out
  CHECK(looks[2].smem == std::vector<std::int64_t>{4, 3});     // 1 % as well, in the end
  CHECK(looks[2].how.rounds > looks[1].how.rounds);
}

TEST_CASE("who may be as fast by the interval is looked at again, however far behind") {
  std::vector<Trial> trials{trial(10, 1), trial(10, 2)};
  std::vector<Looked> looks;
  REQUIRE(
      settle(trials, TimingMode::cold, kNone, kNone, says({{{1, 10}, {2, 10.5}}, 0.1}, &looks)));
  CHECK(looks.size() == 3);
  // Both intervals must reach as far, not only one to the other.
  looks.clear();
  trials = {trial(10, 1), trial(10, 2)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, kNone, says({{{1, 10}, {2, 10.3}}, 0.02}, &looks));
  REQUIRE(standing);
  CHECK(looks.size() == 1);
  CHECK_FALSE(standing->tie);
}

TEST_CASE("a look asks for what the run was given") {
  TuneOptions options;
  options.seed = 7;
  options.limits.max_sms = 8;
  const worker::CompareRequest request = look_request({}, options, {3, 12});
  CHECK(request.rounds == 3);
  CHECK(request.most_rounds == 12);
  CHECK(request.options.seed == 7);
  CHECK(request.options.max_sms == 8);
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

TEST_CASE("the winner of an earlier run is timed again where others as slow as it are not") {
  for (const bool former : {false, true}) {
    std::vector<Trial> trials{trial(10, 5), trial(10, 7), trial(12.5, 6)};
    const auto standing =
        settle(trials, TimingMode::cold, kNone, former ? std::optional<std::size_t>(2) : kNone,
               says({{{5, 13}, {7, 13}, {6, 12}}}));
    REQUIRE(standing);
    CHECK(standing->timed_again.contains(2) == former);
    CHECK((standing->winner == 2) == former);
  }
  std::vector<Trial> trials{trial(10, 5), trial(10, 7), trial(13.5, 6)};
  const auto standing =
      settle(trials, TimingMode::cold, kNone, 2, says({{{5, 13}, {7, 13}, {6, 12}}}));
  REQUIRE(standing);
  CHECK_FALSE(standing->timed_again.contains(2));
}

TEST_CASE("who led by a mistake keeps neither the default nor a former winner out of the final") {
  for (const bool former : {false, true}) {
    std::vector<Trial> trials{trial(10.4, 9, 16), trial(15, 1, 32), trial(18, 5, 48)};
    const std::optional<std::size_t> seeded = 2;
    const auto standing =
        settle(trials, TimingMode::cold, former ? std::nullopt : seeded,
               former ? seeded : std::nullopt, says({{{9, 15.7}, {1, 15}, {5, 14}}}));
    REQUIRE(standing);
    CHECK(standing->winner == 2);
  }
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

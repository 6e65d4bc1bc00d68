// Who is in the final, how long it looks, and at whom again.
#include "test/unit/tune/looks.h"

namespace autotune::tune {

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

}  // namespace autotune::tune

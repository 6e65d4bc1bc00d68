#include "autotune/tune/finalists.h"

#include "kernels/kernel.h"
#include "test/support/catch.h"

namespace autotune::tune {
namespace {

Trial trial(double us, std::int64_t smem, int block_n = 16) {
  Trial trial;
  const std::string text = "mma:block_m=16,block_n=" + std::to_string(block_n);
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  trial.config = *config;
  trial.measurement.median_us = us;
  trial.predicted.smem_bytes = smem;
  return trial;
}

// Replies with fixed medians and an interval of the given half width around their ratio; the same
// again to those who ask for more pairs.
struct Bout {
  double a;
  double b;
  double width;
};
Pairing replies(std::vector<Bout> bouts, int* asked = nullptr) {
  return [bouts = std::move(bouts), next = std::size_t{0}, asked](
             const Trial&, const Trial&,
             Pairs pairs) mutable -> Expected<std::optional<worker::CompareReply>> {
    const bool again = pairs.least == 30;
    if (!again) REQUIRE(next < bouts.size());
    const Bout& bout = again ? bouts[next - 1] : bouts[next++];
    if (asked && !again) ++*asked;
    worker::CompareReply reply;
    reply.a.median_us = bout.a;
    reply.b.median_us = bout.b;
    reply.ratio = bout.b / bout.a;
    reply.ratio_lo = reply.ratio - bout.width;
    reply.ratio_hi = reply.ratio + bout.width;
    return reply;
  };
}

}  // namespace

TEST_CASE("one clear leader needs no final") {
  std::vector<Trial> trials{trial(20, 1), trial(10, 9), trial(12, 1)};
  const auto standing = settle(trials, 0, std::nullopt, replies({}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK_FALSE(standing->tie);
  CHECK(standing->lead_percent == Approx(20));
  CHECK(standing->timed_again.empty());
}

TEST_CASE("the pairing overrules what was measured before") {
  std::vector<Trial> trials{trial(10, 1), trial(10.1, 9)};
  const auto standing = settle(trials, std::nullopt, std::nullopt, replies({{10.4, 10.0, 0.001}}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK(trials[1].measurement.median_us == 10.0);
  CHECK(trials[0].measurement.median_us == 10.4);
  CHECK(standing->lead_percent == Approx(4));
  CHECK(standing->timed_again == std::set<std::size_t>{0, 1});
}

TEST_CASE("a tie goes to fewer resources and is said to be one") {
  std::vector<Trial> trials{trial(10, 9), trial(10.1, 1)};
  const auto standing = settle(trials, std::nullopt, std::nullopt, replies({{10, 10.01, 0.01}}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK(standing->tie);
}

TEST_CASE("a tie by more than 0.2 % goes to the faster one") {
  for (const double challenger : {10.03, 9.97}) {
    std::vector<Trial> trials{trial(10, 5), trial(10.1, challenger > 10 ? 1 : 9)};
    const auto standing =
        settle(trials, std::nullopt, std::nullopt, replies({{10, challenger, 0.01}}));
    REQUIRE(standing);
    CHECK(standing->winner == (challenger > 10 ? 0u : 1u));
    CHECK(standing->tie);
  }
}

TEST_CASE("sixteen finalists, four of one tile shape at most") {
  const Bout lost{10, 11, 0.001};
  std::vector<Trial> trials;
  for (int i = 0; i < 5; ++i) trials.push_back(trial(10 + 0.01 * i, 5));
  int asked = 0;
  REQUIRE(settle(trials, std::nullopt, std::nullopt, replies({lost, lost, lost}, &asked)));
  CHECK(asked == 3);
  for (int i = 1; i < 18; ++i) trials.push_back(trial(10.1 + 0.01 * i, 5, 16 * i));
  asked = 0;
  REQUIRE(settle(trials, std::nullopt, std::nullopt, replies(std::vector<Bout>(15, lost), &asked)));
  CHECK(asked == 15);
}

TEST_CASE("the default config is not beaten by a tie that was slower") {
  for (const double challenger : {10.01, 9.99}) {
    std::vector<Trial> trials{trial(10.1, 9), trial(10, 1)};  // the default needs more
    const auto standing = settle(trials, 0, std::nullopt, replies({{challenger, 10.0, 0.01}}));
    REQUIRE(standing);
    CHECK(standing->tie);
    CHECK(standing->winner == (challenger > 10 ? 0u : 1u));
    CHECK(trials[standing->winner].measurement.median_us <= trials[0].measurement.median_us);
  }
}

TEST_CASE("the default is timed beside a winner that came close to it") {
  int asked = 0;
  std::vector<Trial> trials{trial(10.4, 5), trial(10, 5), trial(10.1, 5), trial(10.2, 5)};
  const auto standing =
      settle(trials, 0, std::nullopt,
             replies({{10, 10.1, 0.001}, {10, 10.2, 0.001}, {10.5, 10.4, 0.001}}, &asked));
  REQUIRE(standing);
  CHECK(asked == 3);
  CHECK(standing->winner == 0);
  CHECK_FALSE(standing->tie);
}

TEST_CASE("who is beaten by more than 1 % is not timed any longer") {
  for (const double challenger : {10.05, 10.2}) {
    std::vector<int> asked;
    std::vector<Trial> trials{trial(10, 5), trial(10.1, 5)};
    const Pairing pairing = [&, reply = replies({{10, challenger, 0.001}})](
                                const Trial& a, const Trial& b, Pairs pairs) {
      asked.push_back(pairs.least);
      return reply(a, b, pairs);
    };
    REQUIRE(settle(trials, std::nullopt, std::nullopt, pairing));
    CHECK(asked == (challenger > 10.1 ? std::vector{8} : std::vector{8, 30}));
  }
}

TEST_CASE("where no pairing is possible the first measurement decides") {
  std::vector<Trial> trials{trial(10.1, 1), trial(10, 9)};
  const auto standing = settle(
      trials, 0, std::nullopt,
      [](const Trial&, const Trial&, Pairs) -> Expected<std::optional<worker::CompareReply>> {
        return std::optional<worker::CompareReply>();
      });
  REQUIRE(standing);
  CHECK(standing->winner == 1);
  CHECK_FALSE(standing->tie);
}

TEST_CASE("the winner of an earlier run is timed again however slow it was then") {
  std::vector<Trial> trials{trial(10, 5), trial(12.5, 5)};
  const auto standing = settle(trials, std::nullopt, 1, replies({{13, 12, 0.001}}));
  REQUIRE(standing);
  CHECK(standing->winner == 1);
}

TEST_CASE("an error of the pairing ends the final") {
  std::vector<Trial> trials{trial(10.1, 1), trial(10, 9)};
  const auto standing = settle(
      trials, 0, std::nullopt,
      [](const Trial&, const Trial&, Pairs) -> Expected<std::optional<worker::CompareReply>> {
        return fail(ErrorCode::no_gpu, "gone");
      });
  REQUIRE_FALSE(standing);
  CHECK(standing.error().code == ErrorCode::no_gpu);
}

}  // namespace autotune::tune

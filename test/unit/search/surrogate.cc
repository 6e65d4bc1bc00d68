#include "search/surrogate.h"

#include <cmath>

#include "real_plans.h"
#include "search/draw.h"
#include "search/spread.h"
#include "test/support/catch.h"

namespace autotune::search {
namespace {

const Plan& plan() {
  static const Plan plan = plan_on("nvidia-h200", gemm(2048, 2048, 2048));
  return plan;
}

double log_predicted(std::size_t i) { return std::log(plan().survivors[i].predicted_us); }

// Log of measured / predicted on a machine that is slower throughout, by kernel, with each doubling
// of the stages, and where tiles are wide and deep at once.
double residual(std::size_t i) {
  const Config& config = plan().survivors[i].config;
  const double stages = std::log2(value_of(config, "stages"));
  const double wide = std::log2(value_of(config, "block_n")) - 6;
  const double deep = std::log2(value_of(config, "block_k")) - 6;
  return 0.3 + (config.kernel->name() == "mma" ? 0.15 : 0) - 0.08 * stages + 0.03 * wide * deep;
}

// `count` configs spread over the space, all but the first `skipped` of the draw.
std::vector<Surrogate::Sample> samples(std::size_t count, std::size_t skipped = 0) {
  std::vector<Surrogate::Sample> all;
  const auto drawn = draw_spread(plan(), count + skipped, 3);
  for (std::size_t n = skipped; n < drawn.size(); ++n) {
    const std::size_t i = drawn[n];
    all.push_back({i, std::exp(log_predicted(i) + residual(i))});
  }
  return all;
}

double mean_error(const Surrogate& surrogate, const std::vector<Surrogate::Sample>& unseen) {
  const auto means = surrogate.means();
  double sum = 0;
  for (const auto& each : unseen) sum += std::abs(means[each.candidate] - std::log(each.us));
  return sum / static_cast<double>(unseen.size());
}

}  // namespace

TEST_CASE("a surrogate that knows nothing says what the model says") {
  const Surrogate surrogate(plan().survivors);
  const auto means = surrogate.means();
  REQUIRE(means.size() == plan().survivors.size());
  for (std::size_t i = 0; i < means.size(); i += 1000) CHECK(means[i] == log_predicted(i));
}

TEST_CASE("one sample tells about all configs, most about those like it") {
  Surrogate surrogate(plan().survivors);
  const std::vector<Surrogate::Sample> one = {{0, std::exp(log_predicted(0) + 0.5)}};
  surrogate.learn(one);
  const auto means = surrogate.means();
  std::size_t other = 0;  // of another kernel
  while (plan().survivors[other].config.kernel == plan().survivors[0].config.kernel) ++other;
  CHECK(means[0] - log_predicted(0) == Approx(0.5).epsilon(0.02));
  CHECK(means[other] - log_predicted(other) > 0.25);
  CHECK(means[other] - log_predicted(other) < means[0] - log_predicted(0));
}

TEST_CASE("a surrogate learns what the model gets wrong, the better the more it sees") {
  Surrogate surrogate(plan().survivors);
  const auto unseen = samples(300, 60);
  surrogate.learn(samples(8));
  const double few = mean_error(surrogate, unseen);
  surrogate.learn(samples(60));
  const double many = mean_error(surrogate, unseen);
  CHECK(few < 0.12);
  CHECK(many < 0.03);
  CHECK(many < few / 2);
}

TEST_CASE("a surrogate knows how sure it is") {
  Surrogate surrogate(plan().survivors);
  const auto seen = samples(40);
  auto all = seen;
  const auto unseen = samples(200, 40);
  all.insert(all.end(), unseen.begin(), unseen.end());
  surrogate.learn(seen);
  const auto means = surrogate.means();
  std::vector<std::size_t> candidates;
  for (const auto& each : all) candidates.push_back(each.candidate);
  const auto list = surrogate.shortlist(candidates, means, 0);
  REQUIRE(list.size() == all.size());
  int within_two = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list.mean(i) == means[list.candidate(i)]);
    CHECK(list.deviation(i) >= surrogate.spread().rough);
    if (i < seen.size()) {
      CHECK(list.deviation(i) < 1.5 * surrogate.spread().rough);
    } else if (std::abs(list.mean(i) - std::log(all[i].us)) < 2 * list.deviation(i)) {
      ++within_two;
    }
  }
  CHECK(within_two > 180);
}

TEST_CASE("what is taken as measured leaves the means and makes the rest more certain") {
  Surrogate surrogate(plan().survivors);
  surrogate.learn(samples(20));
  const auto unseen = samples(100, 20);
  std::vector<std::size_t> candidates;
  for (const auto& each : unseen) candidates.push_back(each.candidate);
  const auto means = surrogate.means();
  const auto before = surrogate.shortlist(candidates, means, 1);
  auto after = before;
  after.assume(7);
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after.mean(i) == before.mean(i));
    CHECK(after.deviation(i) <= before.deviation(i) * (1 + 1e-9));
  }

  // Just as if it had been measured at what was expected of it.
  auto more = samples(20);
  more.push_back({candidates[7], std::exp(before.mean(7))});
  Surrogate measured(plan().survivors);
  measured.learn(more);
  REQUIRE(measured.spread().main == surrogate.spread().main);
  REQUIRE(measured.spread().joint == surrogate.spread().joint);
  REQUIRE(measured.spread().rough == surrogate.spread().rough);
  const auto told = measured.shortlist(candidates, measured.means(), 0);
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(told.deviation(i) == Approx(after.deviation(i)).epsilon(1e-6));
  }
}

}  // namespace autotune::search

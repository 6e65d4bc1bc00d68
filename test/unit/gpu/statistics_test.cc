#include "autotune/gpu/statistics.h"

#include <random>
#include <vector>

#include "test/support/catch.h"

using namespace autotune::gpu;
using Decision = StopRule::Decision;

TEST_CASE("median of odd, even and no samples") {
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median(std::vector<double>{4, 1, 2, 3}) == 2.5);
  CHECK(median({}) == 0);
}

TEST_CASE("the median's interval covers the true median 95 times of 100") {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0, 0.5);  // its median is 1
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(25);
    for (double& sample : samples) sample = skewed(random);
    const Interval interval = median_interval(samples);
    covered += interval.lo <= 1 && 1 <= interval.hi;
  }
  CHECK(covered > kTrials * 0.94);
  CHECK(covered < kTrials * 0.99);
}

TEST_CASE("the median's error shrinks with the root of the count") {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(100, 1);
  std::vector<double> samples(400);
  for (double& sample : samples) sample = noise(random);
  // sigma * sqrt(pi / 2) / sqrt(n)
  CHECK(median_error(samples) == Approx(1.2533 / 20).epsilon(0.35));
  CHECK(median_error(std::vector<double>{5}) == 0);
  CHECK(median_error(std::vector<double>(10, 5.0)) == 0);
}

TEST_CASE("sampling settles when the median is known well enough") {
  StopRule rule;
  rule.relative_error = 0.005;
  rule.min_samples = 7;
  rule.max_samples = 60;
  rule.max_us = 1e9;
  CHECK(rule.decide(std::vector<double>(6, 100.0)) == Decision::more);
  CHECK(rule.decide(std::vector<double>(7, 100.0)) == Decision::settled);
  std::vector<double> noisy;
  for (int i = 0; i < 59; ++i) noisy.push_back(i % 2 == 0 ? 90.0 : 110.0);
  CHECK(rule.decide(noisy) == Decision::more);
  noisy.push_back(100);
  CHECK(rule.decide(noisy) == Decision::exhausted);
}

TEST_CASE("a time limit ends sampling, but never before three samples") {
  StopRule rule;
  rule.max_us = 60'000;
  CHECK(rule.decide(std::vector<double>{40'000, 41'000}) == Decision::more);
  CHECK(rule.decide(std::vector<double>{40'000, 41'000, 50'000}) == Decision::exhausted);
  CHECK(rule.batch({}) == 3);
  CHECK(rule.batch(std::vector<double>{10'000, 10'000, 10'000}) == 3);
}

TEST_CASE("a race is lost only when every sample is clearly behind") {
  StopRule rule;
  rule.behind_us = 100;
  CHECK(rule.decide(std::vector<double>{150, 150}) == Decision::more);
  CHECK(rule.decide(std::vector<double>{150, 150, 103}) == Decision::behind);
  CHECK(rule.decide(std::vector<double>{150, 150, 101}) == Decision::more);
  rule.behind_us = 0;
  CHECK(rule.decide(std::vector<double>{150, 150, 103}) == Decision::more);
}

TEST_CASE("a batch reaches min_samples and never passes max_samples") {
  StopRule rule;
  CHECK(rule.batch(std::vector<double>(3, 10.0)) == 4);
  CHECK(rule.batch(std::vector<double>(58, 10.0)) == 2);
  rule.max_samples = 2;
  CHECK(rule.batch({}) == 2);
  CHECK(rule.decide(std::vector<double>(2, 10.0)) == Decision::exhausted);
}

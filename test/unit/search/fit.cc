#include "search/fit.h"

#include <cmath>
#include <vector>

#include "real_plans.h"

namespace autotune::search {
namespace {

// The model was not fitted to it, so no fit changes which survivors stand for the others.
constexpr std::string_view kUnfitted = "nvidia-gh200-480gb";

// Some 150 survivors of each of some problems, timed by a GPU with those coefficients, each time
// off by up to `noise`.
std::vector<MeasuredConfig> timed(const ModelCoefficients& real, double noise) {
  Problem by_ffma = gemm(1024, 1024, 1024, DType::fp32);
  by_ffma.exact_fp32 = true;
  const Problem problems[] = {gemm(4096, 4096, 4096),
                              gemm(1024, 1024, 1024),
                              gemm(16, 4096, 4096),
                              gemm(512, 2048, 8192),
                              gemm(100, 1524, 512),
                              gemm(2048, 2048, 2044),  // rows that mma alone can load as they lie
                              gemm(2048, 2048, 2048, DType::tf32),
                              by_ffma};
  DeviceSpec device = device_named(kUnfitted);
  device.model = real;
  std::vector<MeasuredConfig> all;
  std::uint64_t state = 1;
  // Where gemv serves, nearly all configs are its own, and they say little of what is fitted.
  Limits tiles;
  for (const char* other : {"gemv", "wgmma_pack"}) {
    tiles.excludes.push_back(parse_pattern(other, *find_family("gemm")).value());
  }
  for (const Problem& problem : problems) {
    const Plan plan = plan_on(kUnfitted, problem, tiles);
    const std::size_t step = std::max<std::size_t>(1, plan.survivors.size() / 150);
    for (std::size_t i = 0; i < plan.survivors.size(); i += step) {
      const Candidate& each = plan.survivors[i];
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const double luck = static_cast<double>(state >> 40) / (1 << 24) * 2 - 1;
      all.push_back(
          {problem, each.config,
           predict_us(each.config, problem, device, each.resources, 0) * (1 + noise * luck)});
    }
  }
  return all;
}

ModelCoefficients other_gpu() {
  ModelCoefficients real;
  real.turns_tensor_share = 0.8;
  real.ahead_tensor_share = 0.9;
  real.ffma_share = 0.75;
  real.dram_latency_clocks = 1100;
  real.epilogue_clocks = 900;
  real.store_bytes_per_clock = 20;
  real.turns_l2_bytes_per_clock = 30;
  real.ahead_l2_bytes_per_clock = 45;
  return real;
}

}  // namespace

TEST_CASE("a fit finds the coefficients that made the times", "[long]") {
  const auto observations = timed(other_gpu(), 0);
  const FitData data(observations, device_named(kUnfitted));
  CHECK(data.problems() == 8);
  const auto fitted = data.fit();
  REQUIRE(fitted);
  CHECK(fitted->turns_tensor_share == Approx(0.8).epsilon(0.1));
  CHECK(fitted->ahead_tensor_share == Approx(0.9).epsilon(0.05));
  CHECK(fitted->ffma_share == Approx(0.75).epsilon(0.05));
  CHECK(fitted->turns_l2_bytes_per_clock == Approx(30).epsilon(0.1));
  CHECK(fitted->ahead_l2_bytes_per_clock == Approx(45).epsilon(0.1));
  CHECK(data.error_of(*fitted).median < 0.01);
  CHECK(data.error_of(ModelCoefficients{}).median > 0.1);
  CHECK(data.error_of(other_gpu()).p90 < 1e-9);
  CHECK(data.error_of(other_gpu()).first_choice == Approx(1));
  // From elsewhere it comes to the same.
  const auto from_there = data.fit(other_gpu());
  REQUIRE(from_there);
  CHECK(from_there->turns_tensor_share == Approx(fitted->turns_tensor_share).epsilon(0.05));
  CHECK(from_there->ahead_l2_bytes_per_clock ==
        Approx(fitted->ahead_l2_bytes_per_clock).epsilon(0.05));
}

TEST_CASE("with noise it is as good as the noise, also on problems it was not fitted to",
          "[long]") {
  const auto observations = timed(other_gpu(), 0.1);
  const FitData data(observations, device_named(kUnfitted));
  const auto fitted = data.fit();
  REQUIRE(fitted);
  CHECK(data.error_of(*fitted).median < 0.06);
  const auto left_out = data.left_out_error(*fitted);
  REQUIRE(left_out);
  CHECK(left_out->trials == static_cast<std::int64_t>(data.trials()));
  CHECK(left_out->median < data.error_of(ModelCoefficients{}).median);
  CHECK(left_out->p90 >= left_out->median);
}

TEST_CASE("times that no GPU has leave every coefficient within its bounds", "[long]") {
  for (const double factor : {1e-3, 1e3}) {
    auto observations = timed({}, 0);
    for (MeasuredConfig& each : observations) each.us *= factor;
    const auto fitted = FitData(observations, device_named(kUnfitted)).fit();
    REQUIRE(fitted);
    for (const Coefficient& each : model_coefficients()) {
      INFO(each.name << " with times x " << factor);
      const double value = (*fitted).*each.member;
      CHECK(value >= each.lo);
      CHECK(value <= each.hi);
    }
  }
}

TEST_CASE("what the data say nothing about keeps its default") {
  Problem problem = gemm(1024, 1024, 1024, DType::fp32);
  problem.exact_fp32 = true;  // by the FFMA units alone
  const Plan plan = plan_on(kUnfitted, problem);
  std::vector<MeasuredConfig> observations;
  for (std::size_t i = 0; i < plan.survivors.size(); i += 50) {
    observations.push_back(
        {problem, plan.survivors[i].config, 1.3 * plan.survivors[i].predicted_us});
  }
  const auto fitted = FitData(observations, device_named(kUnfitted)).fit();
  REQUIRE(fitted);
  const ModelCoefficients defaults;
  CHECK(fitted->ahead_tensor_share == Approx(defaults.ahead_tensor_share));
  CHECK(fitted->turns_tensor_share == Approx(defaults.turns_tensor_share));
  CHECK(fitted->cluster_clocks == Approx(defaults.cluster_clocks));
  CHECK(fitted->ffma_share < 0.9);
}

TEST_CASE("the first choice loses what the predicted fastest took longer than the fastest") {
  const Problem problem = gemm(1024, 1024, 1024);
  const Plan plan = plan_on(kUnfitted, problem);
  const std::vector<MeasuredConfig> trials = {{problem, plan.survivors.front().config, 12},
                                              {problem, plan.survivors.back().config, 10}};
  const ModelError error = FitData(trials, device_named(kUnfitted)).error_of({});
  CHECK(error.trials == 2);
  CHECK(error.first_choice == Approx(1.2));
}

TEST_CASE("of many trials a few hundred are taken; what cannot run is not") {
  const Problem problem = gemm(1024, 1024, 1024);
  const Plan plan = plan_on(kUnfitted, problem);
  std::vector<MeasuredConfig> observations;
  for (std::size_t i = 0; i < 2000; ++i) {
    observations.push_back({problem, plan.survivors.at(i).config, plan.survivors[i].predicted_us});
  }
  CHECK(FitData(observations, device_named(kUnfitted)).trials() == 250);
  // wgmma is not in Ampere.
  const FitData elsewhere(observations, device_named("nvidia-a100-sxm4-80gb"));
  CHECK(elsewhere.trials() < 250);
  observations.resize(3);
  observations[0].us = 0;
  observations[1].us = std::nan("");
  CHECK(FitData(observations, device_named(kUnfitted)).trials() == 1);
}

TEST_CASE("without data the error says what to do") {
  const FitData none({}, device_named(kUnfitted));
  const auto fitted = none.fit();
  REQUIRE_FALSE(fitted);
  CHECK(fitted.error().code == ErrorCode::bad_input);
  CHECK(fitted.error().message.find("autotune tune") != std::string::npos);
  CHECK_FALSE(none.left_out_error({}));
}

}  // namespace autotune::search

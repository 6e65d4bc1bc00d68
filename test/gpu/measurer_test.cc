// The measurer's answers: right and timed, wrong, refused; and the comparison with cuBLAS.
#include "autotune/gpu/measurer.h"

#include <chrono>
#include <string>

#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;
using test::gemm;

TEST_CASE("a right config is timed until its median is known, and raced when behind") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  auto request = test::default_request(gemm(1024, 1024, 1024, DType::bf16, Layout::tn), device);
  const auto reply = measurer->measure(request);
  INFO(reply.log);
  REQUIRE(reply.outcome == Outcome::ok);
  CHECK(reply.id == request.id);
  CHECK(reply.measurement.samples >= 7);
  CHECK(reply.measurement.median_us > 1);
  CHECK(reply.measurement.result_error < 2.5e-3);
  CHECK(reply.measurement.max_error_ratio < 1);
  CHECK(!reply.measurement.raced);

  request.options.behind_us = reply.measurement.median_us / 2;
  const auto behind = measurer->measure(request);
  CHECK(behind.outcome == Outcome::ok);
  CHECK(behind.measurement.raced);
  CHECK(behind.measurement.samples < 7);

  request.options.behind_us = 0;
  request.problem.mode = TimingMode::hot;
  const auto hot = measurer->measure(request);
  INFO(hot.log);
  REQUIRE(hot.outcome == Outcome::ok);
  CHECK(hot.measurement.median_us < reply.measurement.median_us * 1.05);
}

TEST_CASE("between requests about long launches the GPU is kept warm, else it rests") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  const auto warm_after = [&](std::int64_t size) {
    const auto request =
        test::default_request(gemm(size, size, size, DType::bf16, Layout::tn), device);
    const auto reply = measurer->measure(request);
    INFO(reply.log);
    REQUIRE(reply.outcome == Outcome::ok);
    return measurer->keep_warm();
  };
  CHECK_FALSE(warm_after(256));
  CHECK(warm_after(4096));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto kept = [&] { return Clock::now() - start; };
  while (kept() < std::chrono::seconds(5) && measurer->keep_warm()) {
  }
  CHECK(kept() > std::chrono::milliseconds(500));
  CHECK(kept() < std::chrono::seconds(5));
}

TEST_CASE("what keeps the GPU warm outlives the comparison that it is from") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  const auto good = test::default_request(gemm(4096, 4096, 4096, DType::bf16, Layout::tn), device);
  worker::CompareRequest request;
  request.problem = good.problem;
  request.rounds = request.most_rounds = 3;
  request.baseline = true;
  request.contenders = {{good.config, good.cubin, {}}};
  CHECK(measurer->compare(request).outcome == Outcome::ok);
  for (int i = 0; i < 3; ++i) CHECK(measurer->keep_warm());
  // Without a contender that runs there is the baseline alone, which is gone.
  request.contenders.front().cubin = "no code";
  CHECK(measurer->compare(request).outcome == Outcome::ok);
  CHECK_FALSE(measurer->keep_warm());
}

TEST_CASE("alpha, beta and padded rows") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  for (const DType dtype : test::kAllDTypes) {
    Problem problem = gemm(300, 260, 512, dtype, Layout::tt);
    problem.alpha = -0.75;
    problem.beta = 2;
    problem.lda = 520;
    problem.ldb = 272;
    problem.ldc = 264;
    const auto reply = measurer->measure(test::default_request(problem, measurer->gpu().spec));
    INFO(to_string(dtype) << ": " << reply.log);
    CHECK(reply.outcome == Outcome::ok);
  }
}

TEST_CASE(
    "a kernel that writes nothing is a wrong result, one compiled for fewer threads refused") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  const Problem problem = gemm(512, 512, 512, DType::bf16, Layout::tn);
  auto request = test::default_request(problem, device);
  const Config config = test::default_config(problem, device).config;
  const std::string entry(config.kernel->entry());
  auto fake = [&](const std::string& bounds) {
    const std::string source = "struct Args { char bytes[512]; };\nextern \"C\" __global__ void " +
                               bounds + " " + entry + "(const __grid_constant__ Args args) {}";
    const auto code = (*gpu::nvrtc())->compile({source, entry, device.limits.arch, {}});
    INFO(code.log);
    REQUIRE(code.ok);
    return code.cubin;
  };
  request.cubin = fake("");
  const auto wrong = measurer->measure(request);
  CHECK(wrong.outcome == Outcome::wrong_result);
  CHECK(wrong.log.find("never written") != std::string::npos);

  request.cubin = fake("__launch_bounds__(32)");
  const auto refused = measurer->measure(request);
  CHECK(refused.outcome == Outcome::launch_failed);
  REQUIRE(refused.verdict);
  CHECK(refused.verdict->rule == Rule::threads);
  CHECK(refused.verdict->limit == 32);
  CHECK(!measurer->lost());
}

TEST_CASE("operands that do not fit are refused with the bytes") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  auto request =
      test::default_request(gemm(512, 512, 512, DType::fp32, Layout::tn), measurer->gpu().spec);
  request.problem = gemm(2'000'000'000, 512, 512, DType::fp32, Layout::tn);
  const auto reply = measurer->measure(request);
  CHECK(reply.outcome == Outcome::launch_failed);
  REQUIRE(reply.verdict);
  CHECK(reply.verdict->rule == Rule::memory);
  CHECK(reply.verdict->required > 4'000'000'000'000);
}

TEST_CASE("cuBLAS computes the same product in every layout and type") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : test::kAllLayouts) {
      Problem problem = gemm(384, 640, 512, dtype, layout);
      problem.alpha = 0.5;
      problem.beta = layout == Layout::nt ? 1.5 : 0;
      const auto ours = test::default_request(problem, measurer->gpu().spec);
      worker::CompareRequest request;
      request.problem = problem;
      request.contenders = {{ours.config, ours.cubin, {}}};
      request.baseline = true;
      request.rounds = 10;
      const auto reply = measurer->compare(request);
      INFO(describe(problem) << ": " << reply.log);
      REQUIRE(reply.outcome == Outcome::ok);
      CHECK(reply.baseline_candidates >= 1);
      CHECK(reply.baseline.rfind("cublas", 0) == 0);
      REQUIRE(reply.sides.size() == 2);
      const worker::Side& cublas = reply.sides[1];
      CHECK(cublas.measurement.result_error < 5e-3);
      if (dtype == DType::fp32) CHECK(cublas.measurement.result_error < 1e-5);
      CHECK(reply.sides[0].outcome == Outcome::ok);
      CHECK(reply.sides[0].measurement.samples == 10);
      CHECK(reply.sides[0].ratio == 1);
      CHECK(cublas.ratio > 0);
      CHECK(cublas.ratio_lo <= cublas.ratio);
      CHECK(cublas.ratio <= cublas.ratio_hi);
    }
  }
}

TEST_CASE("a config compared with itself is as fast as itself") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const auto one =
      test::default_request(gemm(2048, 2048, 2048, DType::bf16, Layout::tn), measurer->gpu().spec);
  worker::CompareRequest request;
  request.problem = one.problem;
  request.contenders = {3, {one.config, one.cubin, {}}};
  const auto reply = measurer->compare(request);
  INFO(reply.log);
  REQUIRE(reply.outcome == Outcome::ok);
  REQUIRE(reply.sides.size() == 3);
  for (const worker::Side& side : reply.sides) CHECK(side.ratio == Approx(1).margin(0.02));

  request.sustain_s = 0.4;
  const auto sustained = measurer->compare(request);
  INFO(sustained.log);
  REQUIRE(sustained.outcome == Outcome::ok);
  REQUIRE(sustained.sides.size() == 3);
  for (const worker::Side& side : sustained.sides) {
    CHECK(side.ratio == Approx(1).margin(0.02));
    CHECK(side.measurement.samples > 8);
    CHECK(side.measurement.samples == sustained.sides[0].measurement.samples);
  }
}

TEST_CASE("a contender that cannot be launched stays behind, the others go on") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const auto one =
      test::default_request(gemm(256, 256, 256, DType::bf16, Layout::tn), measurer->gpu().spec);
  worker::CompareRequest request;
  request.problem = one.problem;
  request.contenders = {{one.config, "no cubin", {}}, {one.config, one.cubin, {}}};
  request.rounds = 5;
  const auto reply = measurer->compare(request);
  INFO(reply.log);
  REQUIRE(reply.outcome == Outcome::ok);
  REQUIRE(reply.sides.size() == 2);
  CHECK(reply.sides[0].outcome == Outcome::launch_failed);
  CHECK_FALSE(reply.sides[0].log.empty());
  CHECK(reply.sides[1].outcome == Outcome::ok);
  CHECK(reply.sides[1].ratio == 1);
  CHECK(reply.sides[1].measurement.samples == 5);
}

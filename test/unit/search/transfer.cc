#include "search/transfer.h"

#include <algorithm>

#include "real_plans.h"

namespace autotune::search {
namespace {

constexpr std::string_view kH200 = "nvidia-h200";

// What the model says of a config elsewhere.
double model_us(const Config& config, const Problem& problem) {
  const DeviceSpec& device = device_named(kH200);
  Resources resources;
  REQUIRE_FALSE(check(config, problem, traits_of(problem), device, {}, &resources));
  return predict_us(config, problem, device, resources, 0);
}

// The fastest or the slowest of a kernel as predicted.
const Candidate& of_kernel(const Plan& plan, std::string_view kernel, bool fastest = true) {
  const Candidate* found = nullptr;
  for (const Candidate& each : plan.survivors) {
    if (each.config.kernel->name() != kernel) continue;
    if (found == nullptr || !fastest) found = &each;
  }
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("with nothing measured the corrected model is the model") {
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096));
  const CorrectedModel model({}, device_named(kH200), 0);
  const Candidate& best = plan.default_config();
  CHECK(model.predict_us(best.config, plan.problem, best.resources) == Approx(best.predicted_us));
}

TEST_CASE("what the model got wrong nearby corrects it; nothing beats a winner where it won") {
  const Problem tuned = gemm(4096, 4096, 4096);
  const Plan plan = plan_on(kH200, tuned);
  const Candidate& winner = plan.survivors.at(40);
  const double measured = 1.3 * winner.predicted_us;
  const CorrectedModel model({{tuned, winner.config, measured, 0}}, device_named(kH200), 0);
  CHECK(model.predict_us(winner.config, tuned, winner.resources) == Approx(measured));
  for (const std::size_t i : {0, 39, 41, 500, 5000}) {
    const Candidate& other = plan.survivors.at(i);
    CHECK(model.predict_us(other.config, tuned, other.resources) >= measured * 0.9999);
  }
  // Far behind, the ratio seen is all that is known.
  const Candidate& slow = plan.survivors.back();
  CHECK(model.predict_us(slow.config, tuned, slow.resources) == Approx(1.3 * slow.predicted_us));
}

TEST_CASE("the nearer a tuned problem, the more it counts") {
  const Problem asked = gemm(2048, 4096, 4096);
  const Plan plan = plan_on(kH200, asked);
  const Candidate& each = plan.default_config();
  const Problem near = gemm(4096, 4096, 4096);
  const Problem far = gemm(4096, 8192, 8192);
  const Tuned slow_near{near, each.config, 1.2 * model_us(each.config, near), 1};
  const Tuned fast_far{far, each.config, 0.8 * model_us(each.config, far), 3};
  const CorrectedModel model({slow_near, fast_far}, device_named(kH200), 0);
  const double us = model.predict_us(each.config, asked, each.resources);
  CHECK(us > 1.15 * each.predicted_us);
  CHECK(us < 1.2 * each.predicted_us);
}

TEST_CASE("a config that runs at no tuned problem is as far off as the winners are") {
  const Plan tuned = plan_on(kH200, gemm(4096, 4096, 4096));
  const Candidate& winner = tuned.default_config();
  const CorrectedModel model({{tuned.problem, winner.config, 1.5 * winner.predicted_us, 1}},
                             device_named(kH200), 0);
  const Plan asked = plan_on(kH200, gemm(1, 4096, 4096));
  const Candidate& few_rows = of_kernel(asked, "gemv");
  CHECK(model.predict_us(few_rows.config, asked.problem, few_rows.resources) ==
        Approx(1.5 * few_rows.predicted_us));
}

TEST_CASE(
    "far behind winners of two kernels, each config is as far off as that of its own kernel") {
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096));
  const auto won = [&](const char* kernel, double ratio) {
    const Candidate& winner = of_kernel(plan, kernel);
    return Tuned{plan.problem, winner.config, ratio * winner.predicted_us, 1};
  };
  const CorrectedModel model({won("wgmma", 1.5), won("mma", 1.1)}, device_named(kH200), 0);
  for (const auto& [kernel, ratio] : {std::pair("wgmma", 1.5), {"mma", 1.1}}) {
    const Candidate& slow = of_kernel(plan, kernel, false);
    CHECK(model.predict_us(slow.config, plan.problem, slow.resources) ==
          Approx(ratio * slow.predicted_us));
  }
}

TEST_CASE("a winner that the rules of quality refuse has been measured, and counts") {
  const Problem tuned = gemm(4096, 4096, 4096);
  Limits keep;
  keep.keep_slow = true;
  const Plan plan = plan_on(kH200, tuned, keep);
  const auto refused =
      std::find_if(plan.survivors.begin(), plan.survivors.end(), [&](const Candidate& each) {
        return check(each.config, tuned, traits_of(tuned), device_named(kH200), {}, nullptr);
      });
  REQUIRE(refused != plan.survivors.end());
  const CorrectedModel model({{tuned, refused->config, 2 * refused->predicted_us, 0}},
                             device_named(kH200), 0);
  CHECK(model.predict_us(refused->config, tuned, refused->resources) ==
        Approx(2 * refused->predicted_us));
}

TEST_CASE("a winner that cannot run where it is said to have won is left out") {
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096));
  const Candidate& best = plan.default_config();
  const Config gemv = of_kernel(plan_on(kH200, gemm(1, 4096, 4096)), "gemv").config;  // few rows
  Problem exact = gemm(4096, 4096, 4096, DType::fp32);
  exact.exact_fp32 = true;  // which wgmma does not multiply
  const CorrectedModel model({{plan.problem, gemv, 1, 0}, {*checked(exact), best.config, 1, 0}},
                             device_named(kH200), 0);
  CHECK(model.predict_us(best.config, plan.problem, best.resources) == Approx(best.predicted_us));
}

TEST_CASE("on a part of the SMs the model is corrected by what it says of as many") {
  const Problem tuned = gemm(4096, 4096, 4096);
  Limits quarter;
  quarter.max_sms = 33;
  const Plan plan = plan_on(kH200, tuned, quarter);
  const Candidate& winner = plan.default_config();
  const double measured = 1.2 * winner.predicted_us;
  const CorrectedModel model({{tuned, winner.config, measured, 0}}, device_named(kH200), 33);
  CHECK(model.predict_us(winner.config, tuned, winner.resources) == Approx(measured));
  const CorrectedModel nothing({}, device_named(kH200), 33);
  CHECK(nothing.predict_us(winner.config, tuned, winner.resources) == Approx(winner.predicted_us));
}

}  // namespace autotune::search

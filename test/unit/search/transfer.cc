#include "search/transfer.h"

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

}  // namespace autotune::search

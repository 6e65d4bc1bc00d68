#include "search/replay.h"

#include <limits>

#include "real_plans.h"
#include "test/support/catch.h"

namespace autotune::search {
namespace {

constexpr std::string_view kH200 = "nvidia-h200";
constexpr double kNever = std::numeric_limits<double>::infinity();

// Every 50th survivor of a problem; the prediction's worst is the fastest, the best predicted
// fails.
std::vector<Recorded> upside_down(const Plan& plan) {
  std::vector<Recorded> recorded;
  for (std::size_t i = 0; i < plan.survivors.size(); i += 50) {
    const bool ok = i > 0;
    recorded.push_back({plan.survivors[i].config, ok ? Outcome::ok : Outcome::spilled,
                        ok ? 1e6 / static_cast<double>(i) : 0});
  }
  return recorded;
}

}  // namespace

TEST_CASE("a recording's plan holds what was recorded and nothing else") {
  const Problem problem = gemm(1024, 1024, 1024);
  const Plan plan = plan_on(kH200, problem);
  const auto recorded = upside_down(plan);
  const auto recording = make_recording(problem, device_named(kH200), {}, recorded);
  REQUIRE(recording);
  REQUIRE(recording->plan.survivors.size() == recorded.size());
  CHECK(recording->plan.generated == static_cast<std::int64_t>(recorded.size()));
  CHECK(recording->plan.rejected.empty());
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    CHECK(recording->plan.survivors[i].config == recorded[i].config);
    CHECK(recording->results[i].candidate == i);
    CHECK(recording->results[i].outcome == recorded[i].outcome);
    CHECK(recording->results[i].median_us == recorded[i].us);
  }
  CHECK(recording->best_us == recorded.back().us);

  Limits limits;
  limits.excludes.push_back(parse_pattern("wgmma", *find_family("gemm")).value());
  const auto without = make_recording(problem, device_named(kH200), limits, recorded);
  REQUIRE(without);
  CHECK(without->plan.survivors.size() < recorded.size());
  CHECK(without->plan.rejected.at("excluded") ==
        static_cast<std::int64_t>(recorded.size() - without->plan.survivors.size()));
  CHECK(without->best_us == recording->best_us);  // what is best is no matter of the check
}

TEST_CASE("a recording of nothing that ran is refused") {
  const Problem problem = gemm(1024, 1024, 1024);
  const Plan plan = plan_on(kH200, problem);
  auto recorded = upside_down(plan);
  for (Recorded& each : recorded) each = {each.config, Outcome::compile_failed, 0};
  const auto recording = make_recording(problem, device_named(kH200), {}, recorded);
  REQUIRE_FALSE(recording);
  CHECK(recording.error().code == ErrorCode::failed);
}

TEST_CASE("a replayed strategy's curve is its best so far over the best of all") {
  const Problem problem = gemm(1024, 1024, 1024);
  const auto recorded = upside_down(plan_on(kH200, problem));
  const auto recording = make_recording(problem, device_named(kH200), {}, recorded);
  REQUIRE(recording);
  const auto exhaustive = make_strategy("exhaustive", recording->plan);
  REQUIRE(exhaustive);
  const Curve curve = replay(**exhaustive, *recording, 7, 1000000);
  REQUIRE(curve.size() == recorded.size());
  CHECK(curve[0] == kNever);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    CHECK(curve[i] == Approx(recorded[i].us / recorded.back().us));
  }
  CHECK(configs_until(curve, 0) == curve.size());
  CHECK(configs_until({kNever, 1.5}, 0.1) == 0);

  const auto again = make_strategy("exhaustive", recording->plan);
  const Curve begun = replay(**again, *recording, 7, 10);
  CHECK(begun == Curve(curve.begin(), curve.begin() + 10));
}

TEST_CASE("the band of curves is their median and their worst") {
  const CurveBand band = band_of(std::vector<Curve>{{3, 2}, {kNever, 4, 1}, {5, 3, 3}});
  CHECK(band.median == Curve{5, 3, 2});
  CHECK(band.worst == Curve{kNever, 4, 3});
  CHECK(band_of(std::vector<Curve>{{2}, {4, 3}}).median == Curve{3, 2.5});
}

}  // namespace autotune::search

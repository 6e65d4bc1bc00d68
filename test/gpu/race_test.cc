// What the sanitizers' tools are run on (`gpu_tests "[race]"`), racecheck among them, which slows a
// kernel down by orders of magnitude and is kept from what stalls it
// (`"[race]~[stalls_racecheck]"`).
#include <Eigen/Core>
#include <random>
#include <vector>

#include "kernels/problem.h"
#include "search/plan.h"
#include "test/gpu/given_gemm.h"
#include "test/support/small_launches.h"

using namespace autotune;

namespace {

void check_sums(bool stalls_racecheck) {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  std::mt19937_64 random(7);
  int launched = 0;
  for (const test::SmallLaunch& each : test::small_launches()) {
    if (each.stalls_racecheck != stalls_racecheck) continue;
    const Problem problem = test::gemm(each.m, each.n, each.k, each.dtype, Layout::tn);
    const auto config = parse_config(each.config, *find_family("gemm"));
    REQUIRE(config);
    if (!config->kernel->unsupported(traits_of(problem), bench->gpu().spec).empty()) continue;
    const auto verdict =
        search::check(*config, problem, traits_of(problem), bench->gpu().spec, {}, nullptr);
    if (verdict) FAIL(search::describe(*verdict, *config, bench->gpu().spec));
    test::GivenMatrices given;
    given.a = test::whole_numbers(each.m * each.k, random);
    given.b = test::whole_numbers(each.k * each.n, random);
    INFO(each.config);
    const std::vector<float> results =
        test::run_given(*bench, *config, problem, given, each.max_sms);
    std::vector<double> sums = test::sums_of(problem, given.a, given.b).sums;
    if (each.dtype == DType::bf16) {
      for (double& sum : sums) sum = static_cast<double>(Eigen::bfloat16(static_cast<float>(sum)));
    }
    CHECK(std::vector<double>(results.begin(), results.end()) == sums);
    ++launched;
  }
  CHECK(launched > 0);
}

}  // namespace

TEST_CASE("small launches of every kind give exact sums", "[race]") { check_sums(false); }

TEST_CASE("and those that racecheck would wait for", "[race][stalls_racecheck]") {
  check_sums(true);
}

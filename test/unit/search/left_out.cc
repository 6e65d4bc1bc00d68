// The wide data of an H200, each problem left out in turn: what the model, fitted to the others and
// corrected by their winners, would have answered among the configs that were measured.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autotune/io/sweep.h"
#include "real_plans.h"
#include "search/fit.h"
#include "search/transfer.h"

namespace autotune::search {
namespace {

double doublings(const Problem& a, const Problem& b) {
  const auto steps = [](std::int64_t x, std::int64_t y) {
    return std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y)));
  };
  return steps(a.m, b.m) + steps(a.n, b.n) + steps(a.k, b.k);
}

std::vector<MeasuredConfig> measured(const io::Sweep& sweep) {
  std::vector<MeasuredConfig> rows;
  for (const io::SweepRow& row : sweep.rows) {
    if (row.outcome != Outcome::ok) continue;
    rows.push_back({sweep.problem, row.config, row.ratio * sweep.reference_us()});
  }
  return rows;
}

const MeasuredConfig& winner(const std::vector<MeasuredConfig>& rows) {
  return *std::min_element(rows.begin(), rows.end(),
                           [](const auto& a, const auto& b) { return a.us < b.us; });
}

}  // namespace

TEST_CASE("each problem of the wide data left out, the answer is near its best") {
  const auto sweeps = io::load_sweeps(AUTOTUNE_SOURCE_DIR "/test/data/wide");
  REQUIRE(sweeps);
  REQUIRE(sweeps->size() >= 10);
  std::vector<std::vector<MeasuredConfig>> problems;
  for (const io::Sweep& sweep : *sweeps) problems.push_back(measured(sweep));

  double log_lost = 0;
  double worst = 1;
  for (std::size_t p = 0; p < problems.size(); ++p) {
    const Problem& problem = problems[p].front().problem;
    std::vector<MeasuredConfig> others;
    std::vector<Tuned> tuned;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      if (i == p) continue;
      others.insert(others.end(), problems[i].begin(), problems[i].end());
      const MeasuredConfig& best = winner(problems[i]);
      const double far = doublings(problem, best.problem);
      const bool alike =
          best.problem.dtype == problem.dtype && best.problem.layout == problem.layout;
      if (alike && far <= 4) tuned.push_back({best.problem, best.config, best.us, far});
    }
    DeviceSpec device = device_named("nvidia-h200");
    const auto fitted = FitData(others, device).fit();
    REQUIRE(fitted);
    device.model = *fitted;

    // The candidates of an answer: the model's own first choice, and what won nearby.
    const CorrectedModel uncorrected({}, device, 0);
    const CorrectedModel corrected(tuned, device, 0);
    const MeasuredConfig* own = nullptr;
    const MeasuredConfig* answer = nullptr;
    double least[2] = {std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::infinity()};
    const auto consider = [&](const MeasuredConfig& each, const CorrectedModel& model,
                              const MeasuredConfig*& best, double& least_us) {
      Resources resources;
      if (check(each.config, problem, traits_of(problem), device, {}, &resources)) return;
      const double us = model.predict_us(each.config, problem, resources);
      if (us >= least_us) return;
      least_us = us;
      best = &each;
    };
    for (const MeasuredConfig& each : problems[p]) consider(each, uncorrected, own, least[0]);
    REQUIRE(own != nullptr);
    for (const MeasuredConfig& each : problems[p]) {
      const bool won_nearby = std::any_of(
          tuned.begin(), tuned.end(), [&](const Tuned& row) { return row.config == each.config; });
      if (won_nearby || &each == own) consider(each, corrected, answer, least[1]);
    }
    REQUIRE(answer != nullptr);
    const double lost = answer->us / winner(problems[p]).us;
    INFO(describe(problem) << " loses " << lost << " with " << to_string(answer->config));
    CHECK(lost < 1.25);
    log_lost += std::log(lost);
    worst = std::max(worst, lost);
  }
  const double mean = std::exp(log_lost / static_cast<double>(problems.size()));
  WARN("wide data, left out: geometric mean " << mean << ", worst " << worst);
  CHECK(mean < 1.08);
}

}  // namespace autotune::search

// Answers for problems that nobody tuned, from those of a suite that were: on a GPU that differs
// from the model's in its coefficients and, config by config, in what no model knows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "autotune/io/load.h"
#include "autotune/io/results.h"
#include "test/unit/lookup/answers.h"

using namespace autotune;

namespace {

const DeviceSpec& h200() { return *io::find_device("nvidia-h200"); }

// From 0 to 1, of the code alone.
double luck_of(const Config& config) {
  std::uint64_t hash = config.kernel->name().front();
  for (const std::int32_t value : code_of(config).values) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 31;
  }
  return static_cast<double>(hash % 1000) / 1000;
}

// The GPU as it is: other coefficients, and up to 8 % that no model knows.
double true_us(const Config& config, const Problem& problem, const Resources& resources) {
  static const DeviceSpec real = [] {
    DeviceSpec device = h200();
    device.model.turns_tensor_share = 0.8;
    device.model.dram_latency_clocks *= 1.5;
    device.model.ahead_l2_bytes_per_clock *= 0.75;
    device.model.epilogue_clocks *= 2;
    return device;
  }();
  return search::predict_us(config, problem, real, resources, 0) * (1 + 0.08 * luck_of(config));
}

double true_us(const std::string& text, const Problem& problem) {
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config.has_value());
  Resources resources;
  REQUIRE_FALSE(
      search::check(*config, problem, traits_of(problem), h200(), {}, &resources).has_value());
  return true_us(*config, problem, resources);
}

struct Winner {
  Problem problem;
  std::string config;
  double us = 0;
};

Winner tune(const Problem& problem) {
  const auto plan = search::make_plan(problem, h200(), *io::default_space("gemm"), {});
  REQUIRE(plan.has_value());
  const search::Candidate* best = nullptr;
  double least = 0;
  for (const search::Candidate& each : plan->survivors) {
    const double us = true_us(each.config, problem, each.resources);
    if (best != nullptr && us >= least) continue;
    best = &each;
    least = us;
  }
  return {problem, to_string(best->config), least};
}

std::vector<Winner> tuned_suite(const char* name) {
  const auto suite = io::load_suite(name, {});
  REQUIRE(suite.has_value());
  std::vector<Winner> winners;
  for (const io::SuiteEntry& entry : suite->entries) winners.push_back(tune(entry.problem));
  return winners;
}

std::vector<io::BuiltinTuned> all_but(const std::vector<Winner>& winners, std::size_t left_out) {
  std::vector<io::BuiltinTuned> rows;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    if (i == left_out) continue;
    rows.push_back({"NVIDIA H200", winners[i].problem, winners[i].config, winners[i].us});
  }
  return rows;
}

}  // namespace

TEST_CASE("with the rest of a suite tuned, the answer for an untuned problem is near its best",
          "[long]") {
  const std::vector<Winner> winners = tuned_suite("gemm");
  double log_sum = 0;
  double worst = 0;
  int nearest = 0;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    const std::vector<io::BuiltinTuned> tuned = all_but(winners, i);
    lookup::Sources sources;
    sources.tuned = tuned;
    const auto best = lookup::answer(winners[i].problem, h200(), sources);
    REQUIRE(best.has_value());
    CHECK(best->match != Match::exact);
    if (best->match == Match::nearest_problem) {
      ++nearest;
      CHECK_FALSE(best->from_problem.empty());
    }
    const double lost = true_us(best->config, winners[i].problem) / winners[i].us;
    INFO(describe(winners[i].problem) << " loses " << lost << " with " << best->config);
    CHECK(lost >= 1);
    CHECK(lost < 1.25);
    log_sum += std::log(lost);
    worst = std::max(worst, lost);
  }
  const double mean = std::exp(log_sum / static_cast<double>(winners.size()));
  WARN("left out: geometric mean " << mean << ", worst " << worst << ", from neighbours " << nearest
                                   << " of " << winners.size());
  CHECK(mean < 1.08);
}

TEST_CASE("between the rungs of a ladder the answer needs no search, fits and is near the best",
          "[long]") {
  const test::Folder folder;
  for (const std::int64_t m : {64, 96, 128, 192, 256, 384}) {
    const Winner rung = tune(test::gemm(m, 14336, 4096));
    const auto config = parse_config(rung.config, *find_family("gemm"));
    REQUIRE(config.has_value());
    test::crown(folder.file(), rung.problem, h200(), *config, rung.us);
  }
  for (const std::int64_t m : {65, 100, 127, 130, 200, 300}) {
    const Problem problem = test::gemm(m, 14336, 4096);
    const BestConfig best = test::answer_with(folder.file(), problem, h200());
    CHECK(best.match == Match::nearest_problem);
    const double lost = true_us(best.config, problem) / tune(problem).us;
    INFO(m << " loses " << lost << " with " << best.config << " of " << best.from_problem);
    CHECK(lost < 1.15);
  }
}

TEST_CASE("each winner measured on an H200 left out in turn, the others answer with what fits") {
  std::vector<Winner> winners;
  for (const char* name : {"tune_gemm", "tune_gemm_fp32", "tune_gemm_spread"}) {
    const std::string path = std::string(AUTOTUNE_SOURCE_DIR "/test/data/h200/") + name + ".json";
    const auto text = io::read_file(path);
    REQUIRE(text.has_value());
    const auto file = io::parse_results(*text, path);
    REQUIRE(file.has_value());
    for (const io::TunedEntry& entry : file->entries) {
      winners.push_back({entry.problem, entry.config, entry.median_us});
    }
  }
  for (const io::BuiltinTuned& entry : io::tuned_entries()) {
    if (entry.device != h200().name) continue;
    winners.push_back({entry.problem, std::string(entry.config), entry.median_us});
  }
  const std::vector<io::BuiltinTuned> all = all_but(winners, winners.size());
  lookup::Bounds bounds;
  bounds.tuned_only = true;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    lookup::Sources sources;
    sources.tuned = all;
    sources.left_out = true;
    const Problem& problem = winners[i].problem;
    const auto best = lookup::answer(problem, h200(), sources, bounds);
    INFO(describe(problem));
    REQUIRE(best.has_value());
    CHECK(best->match != Match::exact);
    CHECK(best->from_problem != describe(problem));
    const bool guessed = best->match == Match::default_config;
    if (!guessed || stage_count(problem) == 1) CHECK(best->from_problem.empty() == guessed);
    const auto config = parse_config(best->config, *find_family(problem.family));
    REQUIRE(config.has_value());
    search::Limits limits;
    limits.keep_slow = true;
    for (std::size_t stage = 0; stage < stage_count(problem); ++stage) {
      const Problem own = stage_of(problem, stage);
      CHECK_FALSE(
          search::check(stage_of(*config, stage), own, traits_of(own), h200(), limits, nullptr)
              .has_value());
    }
  }
}

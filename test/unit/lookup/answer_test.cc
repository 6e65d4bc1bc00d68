// The order of sources behind best_config(), each match made to happen.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "autotune/lookup/distance.h"
#include "autotune/lookup/guess.h"
#include "test/unit/lookup/answers.h"

using namespace autotune;
using namespace autotune::test;

TEST_CASE("a winner of exactly this problem and device is exact") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem problem = gemm(4096, 4096, 4096);
  const Config winner = plan_of(problem, h200).survivors.at(7).config;
  crown(folder.file(), problem, h200, winner, 210.5);
  const BestConfig best = answer_with(folder.file(), problem, h200);
  CHECK(best.match == Match::exact);
  CHECK(best.config == to_string(winner));
  CHECK(best.median_us == Approx(210.5));
  CHECK(best.device == "NVIDIA H200");
  CHECK(best.from_problem.empty());
}

TEST_CASE("a winner of another source is a good guess, not exact") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem problem = gemm(4096, 4096, 4096);
  const Config winner = plan_of(problem, h200).survivors.at(7).config;
  crown(folder.file(), problem, h200, winner, 210.5, false);
  const BestConfig best = answer_with(folder.file(), problem, h200);
  CHECK(best.match == Match::nearest_problem);
  CHECK(best.config == to_string(winner));
  CHECK_FALSE(best.from_problem.empty());
}

TEST_CASE("without an exact one the nearest problem answers") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const search::Plan plan = plan_of(gemm(4096, 4096, 4096), h200);
  crown(folder.file(), gemm(4096, 4096, 4096), h200, plan.survivors.at(3).config, 210.5);
  // Configs behind each other in a plan may change places from problem to problem: this one not.
  const Config slower = plan.survivors.at(plan.survivors.size() / 2).config;
  crown(folder.file(), gemm(1024, 4096, 4096), h200, slower, 60);
  const BestConfig best = answer_with(folder.file(), gemm(4080, 4096, 4096), h200);
  CHECK(best.match == Match::nearest_problem);
  CHECK(best.config == to_string(plan.survivors.at(3).config));
  CHECK(best.from_problem == describe(gemm(4096, 4096, 4096)));
  CHECK(best.median_us == Approx(210.5));
}

TEST_CASE("the model's choice is the answer where it promises more than what won nearby") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem tuned = gemm(2048, 2048, 4096);
  const Problem asked = gemm(512, 512, 4096);
  // What won there (as fast as predicted) would run badly here: the large tiles leave SMs idle.
  const search::Plan plan = plan_of(tuned, h200);
  const search::Candidate& won = plan.survivors.front();
  const std::string text = to_string(won.config);
  const io::BuiltinTuned rows[] = {{"NVIDIA H200", tuned, text, won.predicted_us}};
  lookup::Sources sources;
  sources.tuned = rows;
  const auto best = lookup::answer(asked, h200, sources);
  REQUIRE(best.has_value());
  CHECK(best->match == Match::default_config);
  CHECK(best->config == to_string(plan_of(asked, h200).default_config().config));
  CHECK(best->from_problem.empty());

  lookup::Bounds bounds;
  bounds.tuned_only = true;
  const auto stored = lookup::answer(asked, h200, sources, bounds);
  REQUIRE(stored.has_value());
  CHECK(stored->match == Match::nearest_problem);
  CHECK(stored->config == text);
}

TEST_CASE("of several winners nearby the one that suits the problem answers") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem large = gemm(4096, 4096, 4096);
  const Problem thin = gemm(64, 4096, 4096);
  const Problem asked = gemm(500, 4096, 4096);
  REQUIRE(*lookup::distance(asked, thin) < *lookup::distance(asked, large));
  const auto predicted = [&](const Config& config) {
    Resources resources;
    if (search::check(config, asked, traits_of(asked), h200, {}, &resources)) return 0.0;
    return search::predict_us(config, asked, h200, resources, 0);
  };
  // The nearer one's tiles are made for few rows.
  const search::Candidate of_large = plan_of(large, h200).default_config();
  const search::Plan plan = plan_of(thin, h200);
  const auto of_thin = std::find_if(
      plan.survivors.begin(), plan.survivors.end(), [&](const search::Candidate& each) {
        return predicted(each.config) > 1.5 * predicted(of_large.config);
      });
  REQUIRE(of_thin != plan.survivors.end());
  const std::string texts[] = {to_string(of_large.config), to_string(of_thin->config)};
  const io::BuiltinTuned rows[] = {{"NVIDIA H200", large, texts[0], of_large.predicted_us},
                                   {"NVIDIA H200", thin, texts[1], of_thin->predicted_us}};
  lookup::Sources sources;
  sources.tuned = rows;
  lookup::Bounds bounds;
  bounds.tuned_only = true;
  const auto best = lookup::answer(asked, h200, sources, bounds);
  REQUIRE(best.has_value());
  CHECK(best->config == texts[0]);
  CHECK(best->from_problem == describe(large));
}

TEST_CASE("a winner too far away is no better than the model") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const search::Plan plan = plan_of(gemm(1, 4096, 4096), h200);
  crown(folder.file(), gemm(1, 4096, 4096), h200, plan.survivors.at(3).config, 9);
  CHECK(answer_with(folder.file(), gemm(8192, 4096, 4096), h200).match == Match::default_config);
}

TEST_CASE("another device's winner answers only where it fits here") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const DeviceSpec& ada = device("nvidia-l40s");
  const Problem problem = gemm(4096, 4096, 4096);
  const search::Plan plan = plan_of(problem, h200);
  const search::Candidate* fits = nullptr;
  const search::Candidate* large = nullptr;
  const KernelTraits traits = traits_of(problem);
  for (const search::Candidate& each : plan.survivors) {
    if (!each.config.kernel->unsupported(traits, ada).empty()) continue;
    const bool here = !search::check(each.config, problem, traits, ada, {}, nullptr).has_value();
    if (here && fits == nullptr) fits = &each;
    if (each.resources.smem_bytes > ada.limits.smem_optin_per_block && large == nullptr) {
      large = &each;
    }
  }
  REQUIRE(fits != nullptr);
  REQUIRE(large != nullptr);

  crown(folder.file(), problem, h200, large->config, 200);
  CHECK(answer_with(folder.file(), problem, ada).match == Match::default_config);

  crown(folder.file(), gemm(4096, 4096, 2048), h200, fits->config, 110);
  const BestConfig best = answer_with(folder.file(), problem, ada);
  CHECK(best.match == Match::other_device);
  CHECK(best.config == to_string(fits->config));
  CHECK(best.from_problem == describe(gemm(4096, 4096, 2048)) + " on NVIDIA H200");
}

TEST_CASE("another device's winner does not answer where the model takes it for far slower here") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const DeviceSpec& ada = device("nvidia-l40s");
  const Problem problem = gemm(4096, 4096, 4096);
  const search::Plan plan = plan_of(problem, ada);
  const search::Candidate& slow = plan.survivors.back();
  REQUIRE(slow.predicted_us > 2 * plan.default_config().predicted_us);
  crown(folder.file(), problem, h200, slow.config, 200);
  const BestConfig best = answer_with(folder.file(), problem, ada);
  CHECK(best.match == Match::default_config);
  CHECK(best.config == to_string(plan.default_config().config));
}

namespace {

// What the model says of a config that fits.
double model_us(const Config& config, const Problem& problem, const DeviceSpec& gpu) {
  Resources resources;
  REQUIRE_FALSE(
      search::check(config, problem, traits_of(problem), gpu, {}, &resources).has_value());
  return search::predict_us(config, problem, gpu, resources, 0);
}

}  // namespace

TEST_CASE(
    "a sibling's winner for this very problem answers before this device's for a larger one") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const DeviceSpec& h100 = device("nvidia-h100-80gb-hbm3");
  const Problem asked = gemm(550, 4096, 4096);
  const Problem larger = gemm(4096, 4096, 4096);
  const search::Plan plan = plan_of(asked, h200);
  const search::Candidate& won = plan.survivors.at(3);
  const search::Candidate of_larger = plan_of(larger, h200).default_config();
  REQUIRE(model_us(of_larger.config, asked, h200) > 1.2 * won.predicted_us);
  const std::string texts[] = {to_string(of_larger.config), to_string(won.config)};
  const auto answer_beside = [&](std::string_view other) {
    const io::BuiltinTuned rows[] = {{h200.name, larger, texts[0], of_larger.predicted_us},
                                     {other, asked, texts[1], won.predicted_us}};
    lookup::Sources sources;
    sources.tuned = rows;
    const auto best = lookup::answer(asked, h200, sources);
    REQUIRE(best.has_value());
    return *best;
  };
  const BestConfig best = answer_beside(h100.name);
  CHECK(best.match == Match::other_device);
  CHECK(best.config == texts[1]);
  CHECK(best.from_problem == describe(asked) + " on " + h100.name);
  CHECK(best.median_us == Approx(won.predicted_us));
  // No siblings: other numbers of SMs.
  for (const char* other : {"nvidia-h100-pcie", "nvidia-h20"}) {
    CHECK(answer_beside(device(other).name).match != Match::other_device);
  }
}

TEST_CASE(
    "a sibling's winner is not asked where this device won nearer by, but a search tries it") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem asked = gemm(1000, 4096, 4096);
  const search::Plan plan = plan_of(asked, h200);
  const search::Candidate& fast = plan.survivors.at(1);
  const std::string texts[] = {to_string(plan.survivors.at(plan.survivors.size() / 2).config),
                               to_string(fast.config)};
  std::vector<io::BuiltinTuned> rows{{"NVIDIA H100 PCIe", asked, texts[1], fast.predicted_us},
                                     {"NVIDIA H100 80GB HBM3", asked, texts[1], fast.predicted_us}};
  for (const std::int64_t m : {960, 1024, 1100, 1200, 1300, 1400, 1500}) {
    rows.push_back({"NVIDIA H200", gemm(m, 4096, 4096), texts[0], 1000});
  }
  lookup::Sources sources;
  sources.tuned = rows;
  lookup::Recollection recollection;
  const auto guesses = lookup::nearest_winners(asked, h200, sources, recollection, {});
  REQUIRE(guesses.size() == 7);
  for (std::size_t i = 0; i < 6; ++i) CHECK(guesses[i].where == lookup::Where::here);
  CHECK(guesses[6].where == lookup::Where::sibling);
  CHECK(guesses[6].device == "NVIDIA H100 80GB HBM3");
  const auto best = lookup::answer(asked, h200, sources);
  REQUIRE(best.has_value());
  CHECK(best->match != Match::other_device);
}

TEST_CASE("of other GPUs' winners the nearest answers, of those one that is in a cache") {
  const DeviceSpec& gh200 = device("nvidia-gh200-480gb");
  const Problem asked = gemm(4096, 4096, 4096);
  const search::Plan plan = plan_of(asked, gh200);
  const std::string texts[] = {to_string(plan.survivors.at(0).config),
                               to_string(plan.survivors.at(1).config)};
  lookup::Sources sources;
  const io::BuiltinTuned far_and_near[] = {
      {"NVIDIA H200", gemm(1024, 4096, 4096), texts[0], 60},
      {"NVIDIA H100 PCIe", asked, texts[1], 300}};  // which has fewer SMs
  sources.tuned = far_and_near;
  const auto nearest = lookup::answer(asked, gh200, sources);
  REQUIRE(nearest.has_value());
  CHECK(nearest->from_problem == describe(asked) + " on NVIDIA H100 PCIe");

  const Folder folder;
  crown(folder.file(), asked, device("nvidia-h200"), plan.survivors.at(1).config, 200);
  const auto store = cache::Store::open(folder.file(), cache::Access::read_only);
  REQUIRE(store.has_value());
  const io::BuiltinTuned as_near[] = {{"NVIDIA H100 80GB HBM3", asked, texts[0], 190}};
  sources.store = &*store;
  sources.tuned = as_near;
  const auto stored = lookup::answer(asked, gh200, sources);
  REQUIRE(stored.has_value());
  CHECK(stored->config == texts[1]);
}

TEST_CASE("a rung in the cache answers, not what came along beside it; an imported one is none") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem rung = gemm(640, 4096, 4096);
  const Problem below = gemm(512, 4096, 4096);
  const Problem asked = gemm(554, 4096, 4096);
  const search::Plan plan = plan_of(asked, h200);
  const Config slow = plan.survivors.at(plan.survivors.size() / 2).config;
  const search::Candidate of_below = plan_of(below, h200).default_config();
  REQUIRE(model_us(slow, asked, h200) > 1.5 * model_us(of_below.config, asked, h200));
  const std::string texts[] = {to_string(of_below.config), to_string(slow)};
  const double rung_us = model_us(slow, rung, h200);
  const Folder folder;
  crown(folder.file(), rung, h200, slow, rung_us);
  const auto store = cache::Store::open(folder.file(), cache::Access::read_only);
  REQUIRE(store.has_value());
  std::vector<io::BuiltinTuned> rows{{"NVIDIA H200", below, texts[0], of_below.predicted_us}};
  lookup::Sources sources;
  sources.store = &*store;
  sources.tuned = rows;
  const auto best = lookup::answer(asked, h200, sources);
  REQUIRE(best.has_value());
  CHECK(best->config == texts[1]);

  rows.push_back({"NVIDIA H200", rung, texts[1], rung_us});
  sources.tuned = rows;
  lookup::Recollection recollection;
  CHECK(lookup::nearest_winners(asked, h200, sources, recollection, {}).size() == 2);
  const auto imported = lookup::answer(asked, h200, sources);
  REQUIRE(imported.has_value());
  CHECK(imported->config != texts[1]);
}

TEST_CASE("without a search what this device won comes before what a sibling did") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem asked = gemm(17, 4096, 4096);
  const Problem rung = gemm(32, 4096, 4096);
  const search::Plan plan = plan_of(asked, h200);
  const search::Candidate& slow = plan.survivors.at(plan.survivors.size() / 2);
  const search::Candidate& fast = plan.survivors.at(3);
  for (const Problem& tuned : {gemm(64, 4096, 4096), rung}) {
    const Folder folder;
    crown(folder.file(), tuned, h200, slow.config, slow.predicted_us);
    crown(folder.file(), asked, device("nvidia-h100-80gb-hbm3"), fast.config, fast.predicted_us);
    for (const bool tuned_only : {false, true}) {
      INFO(describe(tuned) << (tuned_only ? ", tuned only" : ""));
      const BestConfig best = answer_with(folder.file(), asked, h200, tuned_only);
      const bool from_here = tuned_only || tuned.m == rung.m;
      CHECK(best.match == (from_here ? Match::nearest_problem : Match::other_device));
      CHECK(best.config == to_string((from_here ? slow : fast).config));
    }
  }
}

TEST_CASE("a rung that came with the program is compared with the model's choice") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem rung = gemm(768, 4096, 4096);
  const Problem asked = gemm(550, 4096, 4096);
  const search::Candidate won = plan_of(rung, h200).default_config();
  const std::string text = to_string(won.config);
  const io::BuiltinTuned rows[] = {{"NVIDIA H200", rung, text, won.predicted_us}};
  lookup::Sources sources;
  sources.tuned = rows;
  const auto best = lookup::answer(asked, h200, sources);
  REQUIRE(best.has_value());
  CHECK(best->match == Match::default_config);
  CHECK(best->config == to_string(plan_of(asked, h200).default_config().config));

  const Folder folder;
  crown(folder.file(), rung, h200, won.config, won.predicted_us);
  CHECK(answer_with(folder.file(), asked, h200).config == text);
}

TEST_CASE("winners that came with the program answer where the cache has none") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem problem = gemm(4096, 4096, 4096);
  const std::string config = to_string(plan_of(problem, h200).survivors.at(4).config);
  const io::BuiltinTuned tuned[] = {{"NVIDIA H200", problem, config, 205}};
  lookup::Sources sources;
  sources.tuned = tuned;
  const auto exact = lookup::answer(problem, h200, sources);
  REQUIRE(exact.has_value());
  CHECK(exact->match == Match::exact);
  CHECK(exact->config == config);
  const auto near = lookup::answer(gemm(4080, 4096, 4096), h200, sources);
  REQUIRE(near.has_value());
  CHECK(near->match == Match::nearest_problem);
  const auto other = lookup::answer(problem, device("nvidia-h100-80gb-hbm3"), sources);
  REQUIRE(other.has_value());
  CHECK(other->match == Match::other_device);
}

TEST_CASE("with nothing known the default answers, on every known GPU, and fits") {
  for (const DeviceSpec& gpu : io::known_devices()) {
    INFO(gpu.name);
    const Problem problem = gemm(1000, 1524, 4096);
    const auto best = lookup::answer(problem, gpu, {});
    if (!best) {
      CHECK(best.error().code == ErrorCode::nothing_fits);
      CHECK(gpu.limits.cc == 75);  // no bf16 there
      continue;
    }
    CHECK(best->match == Match::default_config);
    const auto config = parse_config(best->config, *find_family("gemm"));
    REQUIRE(config.has_value());
    CHECK_FALSE(search::check(*config, problem, traits_of(problem), gpu, {}, nullptr).has_value());
  }
}

TEST_CASE("every answer keeps the user's limits") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem problem = gemm(4096, 4096, 4096);
  const search::Plan plan = plan_of(problem, h200);
  const auto large =
      std::find_if(plan.survivors.begin(), plan.survivors.end(),
                   [](const search::Candidate& each) { return each.resources.smem_bytes > 65536; });
  REQUIRE(large != plan.survivors.end());
  crown(folder.file(), problem, h200, large->config, 210.5);
  auto store = cache::Store::open(folder.file(), cache::Access::read_only);
  REQUIRE(store.has_value());
  lookup::Bounds bounds;
  bounds.limits.max_smem = 32768;
  const auto best = lookup::answer(problem, h200, {&*store, {}}, bounds);
  REQUIRE(best.has_value());
  CHECK(best->match == Match::default_config);
  CHECK(best->config != to_string(large->config));
}

TEST_CASE("a cache that cannot be read is skipped") {
  Problem problem = gemm(4096, 4096, 4096);
  problem.layout = Layout::nn;
  problem.out_dtype = DType::fp32;  // none like it came with the program
  const auto best = lookup::answer_from(std::filesystem::temp_directory_path(), *checked(problem),
                                        device("nvidia-h200"));
  REQUIRE(best.has_value());
  CHECK(best->match == Match::default_config);
}

TEST_CASE("the public call: a device by name, bad problems, unknown devices") {
  BestOptions options;
  options.device = "nvidia-h200";
  options.cache = std::filesystem::temp_directory_path() / "autotune_lookup_none" / "cache.db";
  Problem problem;
  problem.m = problem.n = problem.k = 512;
  const auto best = best_config(problem, options);
  REQUIRE(best.has_value());
  CHECK(best->problem.lda == 512);

  problem.m = 0;
  const auto bad = best_config(problem, options);
  REQUIRE_FALSE(bad.has_value());
  CHECK(bad.error().code == ErrorCode::bad_input);

  problem.m = 512;
  options.device = "voodoo-3";
  const auto unknown = best_config(problem, options);
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().code == ErrorCode::bad_input);
}

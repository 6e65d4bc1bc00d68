// The order of sources behind best_config(), each match made to happen.
#include <algorithm>
#include <filesystem>
#include <string>

#include "autotune/lookup/distance.h"
#include "autotune/lookup/guess.h"
#include "search/check.h"
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

TEST_CASE("a remembered source hash is of one kernel's traits only") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem plain = gemm(4096, 4096, 4096);
  Problem added = plain;
  added.beta = 1;
  const Config config = plan_of(plain, h200).default_config().config;
  lookup::Recollection recollection;
  for (int turn = 0; turn < 2; ++turn) {
    for (const Problem& problem : {plain, added}) {
      CHECK(recollection.hash_of(config, problem, h200) == source_hash(config, problem, h200));
    }
  }
}

TEST_CASE("what was measured here is usable where it spills, and nothing where k is too short") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem problem = gemm(4096, 4096, 4096);
  auto with_slow = search::Limits{};
  with_slow.keep_slow = true;
  const auto all = search::make_plan(problem, h200, *io::default_space("gemm"), with_slow);
  REQUIRE(all.has_value());
  const auto spills = std::find_if(
      all->survivors.begin(), all->survivors.end(), [&](const search::Candidate& each) {
        const auto verdict =
            search::check(each.config, problem, traits_of(problem), h200, {}, nullptr);
        return verdict && verdict->rule == Rule::predicted_spill;
      });
  REQUIRE(spills != all->survivors.end());
  const std::string text = to_string(spills->config);
  CHECK(lookup::usable(text, problem, h200, {}, lookup::Where::here).has_value());
  CHECK_FALSE(lookup::usable(text, problem, h200, {}, lookup::Where::sibling).has_value());

  for (const std::int64_t k : {15, 16}) {
    Problem shallow = gemm(64, 64, k);
    shallow.dtype = shallow.out_dtype = DType::fp32;
    CHECK(lookup::usable("mma:block_m=64,block_n=64,block_k=16", shallow, h200, {},
                         lookup::Where::here)
              .has_value() == (k == 16));
  }
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

TEST_CASE("an MLP whose stages fit one by one, but not together, has no answer") {
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = 1'200'000;
  problem.n = 16'000;
  problem.k = 12'000;
  const DeviceSpec h100 = device("nvidia-h100-80gb-hbm3");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(lookup::answer(stage_of(checked(problem).value(), i), h100, {}));
  }
  const auto none = lookup::answer(checked(problem).value(), h100, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::nothing_fits);
  // x, y, what is between them, three matrices of weights, and the kernels' marks
  const std::int64_t bytes = 2 * (1'200'000LL * (12'000 + 12'000 + 16'000) + 3 * 16'000LL * 12'000);
  CHECK(none.error().message.find("required " + std::to_string(bytes + (64 << 10))) !=
        std::string::npos);
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
  const auto config = parse_config(best->config, *find_family("gemm"));
  REQUIRE(config);
  CHECK_FALSE(search::check(*config, problem, traits_of(problem), h200, bounds.limits, nullptr));
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

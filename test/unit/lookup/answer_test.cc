// The order of sources behind best_config(), each match made to happen.
#include "autotune/lookup/answer.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "autotune/lookup/distance.h"
#include "autotune/lookup/ladder.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return *checked(problem);
}

Problem mlp() {
  Problem problem = gemm(2048, 11008, 4096);
  problem.family = "geglu_mlp";
  problem.ldc = 0;
  return *checked(problem);
}

const DeviceSpec& device(const char* name) {
  const DeviceSpec* found = io::find_device(name);
  REQUIRE(found != nullptr);
  return *found;
}

// A cache of its own for each test.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("autotune_lookup_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path file() const { return path_ / "cache.db"; }

 private:
  std::filesystem::path path_;
};

search::Plan plan_of(const Problem& problem, const DeviceSpec& gpu) {
  auto plan = search::make_plan(problem, gpu, *io::default_space(problem.family), {});
  REQUIRE(plan.has_value());
  return *std::move(plan);
}

// Crowns `config` as measured in `us` on today's code, or on other code.
void crown(const std::filesystem::path& file, const Problem& problem, const DeviceSpec& gpu,
           const Config& config, double us, bool todays_code = true) {
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store.has_value());
  const auto run =
      store->begin_run({fingerprint(gpu), gpu.name, "nvrtc 13.0", "13.0", "0.1.0", "{}", "host"});
  REQUIRE(run.has_value());
  cache::WinnerRecord winner;
  winner.trial.run = *run;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(gpu), to_string(config),
                      todays_code ? source_hash(config, problem, gpu) : std::string(64, '0'),
                      "nvrtc 13.0"};
  winner.trial.measurement.median_us = us;
  winner.trial.measurement.samples = 9;
  REQUIRE(store->record(winner.trial).has_value());
  REQUIRE(store->crown(winner).has_value());
}

BestConfig answer_with(const std::filesystem::path& file, const Problem& problem,
                       const DeviceSpec& gpu) {
  auto store = cache::Store::open(file, cache::Access::read_only);
  REQUIRE(store.has_value());
  lookup::Sources sources;
  sources.store = &*store;
  auto best = lookup::answer(problem, gpu, sources);
  REQUIRE(best.has_value());
  return *std::move(best);
}

}  // namespace

TEST_CASE("distance is the sum of doublings, and only between comparable problems") {
  CHECK(lookup::distance(gemm(64, 64, 64), gemm(64, 64, 64)) == 0.0);
  CHECK(*lookup::distance(gemm(64, 64, 64), gemm(128, 32, 64)) == Approx(2.0));
  Problem other = gemm(64, 64, 64);
  other.dtype = other.out_dtype = DType::fp16;
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), other).has_value());
  other = gemm(64, 64, 64);
  other.layout = Layout::tt;
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), other).has_value());
  other = gemm(64, 64, 64);
  other.mode = TimingMode::hot;
  other.beta = 1;
  CHECK(*lookup::distance(gemm(64, 64, 64), other) == Approx(2.0));
  other = gemm(64, 64, 64);
  other.exact_fp32 = true;
  CHECK(*lookup::distance(gemm(64, 64, 64), other) == Approx(1.0));
  Problem gated = gemm(64, 64, 64);
  gated.family = "geglu";
  other = gated;
  other.activation = Activation::relu;
  CHECK(*lookup::distance(gated, other) == Approx(1.0));
  CHECK_FALSE(lookup::distance(gemm(64, 64, 64), gated));
}

TEST_CASE("a ladder has its ends, powers of two and what is halfway between the larger ones") {
  using Rungs = std::vector<std::int64_t>;
  CHECK(lookup::ladder(1, 130) == Rungs{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 130});
  CHECK(lookup::ladder(100, 200) == Rungs{100, 128, 192, 200});
  CHECK(lookup::ladder(7, 7) == Rungs{7});
  CHECK(lookup::ladder(1, 2147483647).back() == 2147483647);
  // Whatever lies between the ends has a rung above it.
  const auto rungs = lookup::ladder(3, 2000);
  for (std::int64_t m = 3; m <= 2000; ++m) {
    const auto above = std::lower_bound(rungs.begin(), rungs.end(), m);
    CHECK(lookup::is_rung_above(gemm(*above, 64, 64), gemm(m, 64, 64)));
  }
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), gemm(65, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(64, 64, 64), gemm(49, 64, 64)));
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), gemm(48, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(16, 64, 64), gemm(9, 64, 64)));
  CHECK_FALSE(lookup::is_rung_above(gemm(16, 64, 64), gemm(8, 64, 64)));
  CHECK(lookup::is_rung_above(gemm(50, 64, 64), gemm(49, 64, 64)));  // a ladder's end
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 128), gemm(60, 64, 64)));
  Problem hot = gemm(60, 64, 64);
  hot.mode = TimingMode::hot;
  CHECK_FALSE(lookup::is_rung_above(gemm(64, 64, 64), hot));
}

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
  crown(folder.file(), gemm(1024, 4096, 4096), h200, plan.survivors.at(5).config, 60);
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
  // The nearer one's tiles are made for few rows.
  const Problem large = gemm(4096, 4096, 4096);
  const Problem thin = gemm(64, 4096, 4096);
  const Problem asked = gemm(500, 4096, 4096);
  const search::Candidate of_large = plan_of(large, h200).default_config();
  const search::Candidate of_thin = plan_of(thin, h200).default_config();
  REQUIRE(*lookup::distance(asked, thin) < *lookup::distance(asked, large));
  const std::string texts[] = {to_string(of_large.config), to_string(of_thin.config)};
  const io::BuiltinTuned rows[] = {{"NVIDIA H200", large, texts[0], of_large.predicted_us},
                                   {"NVIDIA H200", thin, texts[1], of_thin.predicted_us}};
  lookup::Sources sources;
  sources.tuned = rows;
  lookup::Bounds bounds;
  bounds.tuned_only = true;
  const auto best = lookup::answer(asked, h200, sources, bounds);
  REQUIRE(best.has_value());
  const auto predicted = [&](const search::Candidate& each) {
    Resources resources;
    REQUIRE_FALSE(
        search::check(each.config, asked, traits_of(asked), h200, {}, &resources).has_value());
    return search::predict_us(each.config, asked, h200, resources, 0);
  };
  REQUIRE(predicted(of_large) < predicted(of_thin));
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

TEST_CASE("an MLP that was not tuned as a whole is answered by its stages' winners") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem gated = stage_of(mlp(), 0);
  const Problem down = stage_of(mlp(), 1);
  const Config first = plan_of(gated, h200).survivors.at(3).config;
  const Config second = plan_of(down, h200).survivors.at(5).config;
  crown(folder.file(), gated, h200, first, 100);
  const BestConfig half = answer_with(folder.file(), mlp(), h200);
  CHECK(half.match == Match::default_config);
  CHECK(half.config == to_string(join(first, plan_of(down, h200).default_config().config)));
  CHECK(half.from_problem.empty());

  crown(folder.file(), down, h200, second, 50);
  const BestConfig best = answer_with(folder.file(), mlp(), h200);
  CHECK(best.problem == mlp());
  CHECK(best.match == Match::nearest_problem);
  CHECK(best.config == to_string(join(first, second)));
  CHECK(best.from_problem == describe(gated) + " and " + describe(down));
  CHECK(best.median_us == 0);
}

TEST_CASE("a stage's winner of another device makes an MLP's answer one of another device") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const Problem gated = stage_of(mlp(), 0);
  const Problem down = stage_of(mlp(), 1);
  crown(folder.file(), gated, h200, plan_of(gated, h200).survivors.at(3).config, 100);
  crown(folder.file(), down, device("nvidia-h100-80gb-hbm3"),
        plan_of(down, h200).survivors.at(0).config, 50);
  const BestConfig best = answer_with(folder.file(), mlp(), h200);
  CHECK(best.match == Match::other_device);
  CHECK(best.from_problem ==
        describe(gated) + " and " + describe(down) + " on NVIDIA H100 80GB HBM3");
}

TEST_CASE("an MLP that was tuned as a whole is exact, as long as neither kernel has changed") {
  const Folder folder;
  const DeviceSpec& h200 = device("nvidia-h200");
  const search::Plan gated = plan_of(stage_of(mlp(), 0), h200);
  const search::Plan down = plan_of(stage_of(mlp(), 1), h200);
  const Config stages = join(gated.survivors.at(3).config, down.survivors.at(5).config);
  const Config joined = join(gated.survivors.at(4).config, down.survivors.at(6).config);
  crown(folder.file(), gated.problem, h200, stage_of(stages, 0), 100);
  crown(folder.file(), down.problem, h200, stage_of(stages, 1), 50);
  crown(folder.file(), mlp(), h200, joined, 140);
  const BestConfig best = answer_with(folder.file(), mlp(), h200);
  CHECK(best.match == Match::exact);
  CHECK(best.config == to_string(joined));
  CHECK(best.median_us == Approx(140));
  CHECK(best.from_problem.empty());

  auto store = cache::Store::open(folder.file(), cache::Access::read_only);
  REQUIRE(store.has_value());
  lookup::Sources sources;
  sources.store = &*store;
  sources.left_out = true;
  CHECK(lookup::answer(mlp(), h200, sources)->match != Match::exact);
  lookup::Bounds bounds;
  bounds.limits.max_smem = 32768;
  const auto small = lookup::answer(mlp(), h200, {&*store, {}}, bounds);
  REQUIRE(small.has_value());
  const auto config = parse_config(small->config, *find_family("geglu_mlp"));
  REQUIRE(config.has_value());
  CHECK(resources_of(*config, mlp(), h200, 0).smem_bytes <= 32768);

  crown(folder.file(), mlp(), h200, joined, 130, false);
  const BestConfig stale = answer_with(folder.file(), mlp(), h200);
  CHECK(stale.match == Match::nearest_problem);
  CHECK(stale.config == to_string(stages));
}

TEST_CASE("an MLP's winner that came with the program is exact") {
  const DeviceSpec& h200 = device("nvidia-h200");
  const std::string config =
      to_string(join(plan_of(stage_of(mlp(), 0), h200).survivors.at(4).config,
                     plan_of(stage_of(mlp(), 1), h200).survivors.at(6).config));
  const io::BuiltinTuned tuned[] = {{"NVIDIA H200", mlp(), config, 205}};
  lookup::Sources sources;
  sources.tuned = tuned;
  const auto best = lookup::answer(mlp(), h200, sources);
  REQUIRE(best.has_value());
  CHECK(best->match == Match::exact);
  CHECK(best->config == config);
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

// Answers for problems of two stages: from a winner of the whole, else from those of the stages.
#include <string>

#include "test/unit/lookup/answers.h"

using namespace autotune;
using namespace autotune::test;

namespace {

Problem mlp() {
  Problem problem = gemm(2048, 11008, 4096);
  problem.family = "geglu_mlp";
  problem.ldc = 0;
  return *checked(problem);
}

}  // namespace

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
  CHECK(half.from_problem == describe(gated));

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

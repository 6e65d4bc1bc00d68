// Every winner of configs/tuned for the GPU at hand, launched a thousand times: no hang, no race.
// Takes minutes: `gpu_tests "[endurance]"`, a part of scripts/gpu_round.sh.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "autotune/gpu/launch.h"
#include "autotune/gpu/operands.h"
#include "autotune/io/load.h"
#include "kernels/stages.h"
#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

constexpr int kDraws = 10;
constexpr int kLaunchesPerDraw = 100;

// The first launch on each draw of the inputs is checked against the reference, the others must
// give the very same bits.
void endure(gpu::Workbench& bench, const Config& config, const Problem& problem) {
  const DeviceSpec& device = bench.gpu().spec;
  std::vector<gpu::LoadedKernel> kernels;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(config, i);
    const gpu::CompiledCode code = test::compile(own, stage_of(problem, i), device);
    INFO(code.log);
    REQUIRE(code.ok);
    auto kernel = gpu::LoadedKernel::load(code.cubin, own.kernel->entry());
    REQUIRE(kernel);
    kernels.push_back(*std::move(kernel));
  }
  const auto bytes =
      static_cast<std::size_t>(problem.m * problem.ldc * storage_bytes(problem.out_dtype));
  const auto first = gpu::DeviceMemory::allocate(bytes);
  REQUIRE(first);
  for (int draw = 0; draw < kDraws; ++draw) {
    auto operands = gpu::Operands::create(bench, problem, static_cast<std::uint64_t>(draw) + 1);
    REQUIRE(operands);
    const StageWorkspace workspace = workspace_of(config, problem, device, 0);
    REQUIRE(operands->reserve_workspace(bench, workspace.bytes));
    const DevicePointers at = operands->pointers();
    std::vector<LaunchPlan> plans;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      plans.push_back(stage_launch(config, problem, i, device, at, workspace, 0));
      const auto refused = kernels[i].prepare(plans[i]);
      REQUIRE(refused);
      REQUIRE_FALSE(*refused);
    }
    for (int launch = 0; launch < kLaunchesPerDraw; ++launch) {
      REQUIRE(operands->poison(bench));
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        REQUIRE(kernels[i].launch(plans[i], bench.stream()));
      }
      if (launch == 0) {
        const auto result = operands->verify(bench);
        REQUIRE(result);
        INFO(result->what);
        REQUIRE(result->ok);
        REQUIRE(bench.copy(first->address(), at.c, bytes));
        continue;
      }
      const auto differences = bench.count_differences(at.c, first->address(), bytes);
      REQUIRE(differences);
      INFO("draw " << draw << ", launch " << launch);
      REQUIRE(*differences == 0);
    }
  }
}

struct Winner {
  Problem problem;
  std::string config;
};

// Of configs/tuned, or of the file that AUTOTUNE_TUNED names: winners that are not built in yet.
std::vector<Winner> winners_for(const DeviceSpec& device) {
  std::vector<Winner> winners;
  if (const char* file = std::getenv("AUTOTUNE_TUNED")) {
    const auto text = io::read_file(file);
    if (!text) FAIL(text.error().message);
    const auto tuned = io::parse_tuned(*text, file);
    if (!tuned) FAIL(tuned.error().message);
    for (const io::TunedEntry& entry : tuned->entries) {
      winners.push_back({entry.problem, entry.config});
    }
    return winners;
  }
  for (const io::BuiltinTuned& entry : io::tuned_entries()) {
    if (entry.device != device.name) continue;
    winners.push_back({entry.problem, std::string(entry.config)});
  }
  return winners;
}

}  // namespace

TEST_CASE("1000 launches of each winner: bit-equal on the same inputs, right on all",
          "[.][endurance]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  int winners = 0;
  for (const auto& [problem, text] : winners_for(bench->gpu().spec)) {
    const auto config = parse_config(text, *find_family(problem.family));
    REQUIRE(config);
    INFO(describe(problem) << " with " << text);
    endure(*bench, *config, problem);
    ++winners;
  }
  std::cout << winners << " winners endured" << std::endl;
  if (test::gpu_is_required()) CHECK(winners > 0);
}

TEST_CASE("a single changed element counts as a difference") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  constexpr std::size_t kBytes = 1 << 20;
  const auto a = gpu::DeviceMemory::allocate(kBytes);
  const auto b = gpu::DeviceMemory::allocate(kBytes);
  REQUIRE((a && b));
  REQUIRE(bench->fill_bytes(a->address(), 1, kBytes));
  REQUIRE(bench->fill_bytes(b->address(), 1, kBytes));
  CHECK(bench->count_differences(a->address(), b->address(), kBytes).value() == 0);
  const unsigned char other = 2;
  REQUIRE(bench->upload(b->address() + kBytes - 1, &other, 1));
  REQUIRE(bench->upload(b->address() + 1000, &other, 1));
  CHECK(bench->count_differences(a->address(), b->address(), kBytes).value() == 2);
}

// Every winner of configs/tuned for the GPU at hand, and configs whose stages are overwritten as
// soon as they are read, launched a thousand times: no hang, no race. Takes minutes: `gpu_tests
// "[endurance]"`, a part of scripts/gpu_round.sh.
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
    std::vector<gpu::ReadyLaunch> launches;  // as programs have them
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const DeviceSpec here = kernels[i].placed(device);
      auto ready = kernels[i].ready([&](const DevicePointers& pointers) {
        return stage_launch(config, problem, i, here, pointers, workspace, 0);
      });
      REQUIRE(ready);
      const auto refused = kernels[i].prepare(ready->plan);
      REQUIRE(refused);
      REQUIRE_FALSE(*refused);
      launches.push_back(*std::move(ready));
    }
    for (int launch = 0; launch < kLaunchesPerDraw; ++launch) {
      REQUIRE(operands->poison(bench));
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        REQUIRE(kernels[i].launch(launches[i], at, bench.stream()));
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

// Survivors of one kernel with that few stages.
std::vector<Config> with_stages(int stages, const Problem& problem, const DeviceSpec& device,
                                const std::string& kernel, std::size_t count) {
  auto plan = search::make_plan(problem, device, *io::default_space(problem.family), {});
  REQUIRE(plan);
  std::erase_if(plan->survivors, [&kernel, stages](const search::Candidate& each) {
    return each.config.kernel->name() != kernel || value_of(each.config, "stages") != stages;
  });
  std::vector<Config> configs;
  for (const search::Candidate& each :
       search::sample_survivors(*plan, static_cast<int>(count), /*seed=*/1)) {
    configs.push_back(each.config);
  }
  REQUIRE(configs.size() == count);
  return configs;
}

}  // namespace

TEST_CASE("1000 launches of the tightest rings: bit-equal on the same inputs, right on all",
          "[.][endurance][rings]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  struct Case {
    const char* kernel;
    int stages;  // the fewest that its space has
    Problem problem;
    std::size_t configs;
  };
  // All of their operands stay in the L2, from where copies come soonest.
  const Case cases[] = {
      {"wgmma_fp32", 2, test::gemm(1024, 1000, 4096, DType::fp32), 24},
      {"wgmma", 2, test::gemm(1024, 1000, 4096), 4},
      {"mma_bulk", 1, test::gemm(100, 512, 6002), 4},
  };
  for (const Case& each : cases) {
    const DeviceSpec& device = bench->gpu().spec;
    const HostTwin& twin = *find_kernel(*find_family(each.problem.family), each.kernel);
    if (!twin.unsupported(traits_of(each.problem), device).empty()) continue;
    for (const Config& config :
         with_stages(each.stages, each.problem, device, each.kernel, each.configs)) {
      INFO(describe(each.problem) << " with " << to_string(config));
      endure(*bench, config, each.problem);
    }
  }
}

TEMPLATE_TEST_CASE_SIG("1000 launches of each winner: bit-equal on the same inputs, right on all",
                       "[.][endurance]", ((std::size_t part), part), 0, 1, 2, 3, 4, 5, 6, 7) {
  constexpr std::size_t kParts = 8;  // which may run at the same time
  static_assert(part < kParts);
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const std::vector<Winner> winners = winners_for(bench->gpu().spec);
  if (test::gpu_is_required()) REQUIRE_FALSE(winners.empty());
  std::size_t endured = 0;
  for (std::size_t i = part; i < winners.size(); i += kParts) {
    const auto& [problem, text] = winners[i];
    const auto config = parse_config(text, *find_family(problem.family));
    REQUIRE(config);
    INFO(describe(problem) << " with " << text);
    endure(*bench, *config, problem);
    ++endured;
    std::cout << "endured: " << describe(problem) << " with " << text << std::endl;
  }
  std::cout << endured << " of " << winners.size() << " winners endured" << std::endl;
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

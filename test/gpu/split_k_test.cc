// Sums of split k: right on tiles and k that nothing divides, the same bits every time, and a
// workspace that is fit for the next launch, of whichever kernel.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/gpu/launch.h"
#include "autotune/gpu/operands.h"
#include "search/check.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

// Every number of parts in a cluster, more than a cluster has, and parts without a cluster.
const std::string kConfigs[] = {
    "wgmma:block_m=64,block_n=32,stages=4,consumers=1,split_k=2",
    "wgmma:block_m=128,block_n=48,stages=3,consumers=2,split_k=3",
    "wgmma:block_m=192,block_n=96,stages=2,consumers=3,split_k=4",
    "wgmma:block_m=64,block_n=40,stages=2,consumers=1,split_k=5",
    "wgmma:block_m=64,block_n=96,stages=3,consumers=1,split_k=6",
    "wgmma:block_m=128,block_n=56,stages=2,consumers=1,split_k=7",
    "wgmma:block_m=128,block_n=128,stages=4,consumers=2,split_k=8",
    "wgmma:block_m=64,block_n=24,stages=4,consumers=1,split_k=9",
    "wgmma:block_m=128,block_n=64,stages=4,consumers=2,split_k=12",
    "wgmma:block_m=128,block_n=128,stages=2,consumers=2,split_k=16",
    "wgmma:block_m=64,block_n=64,stages=6,consumers=1,split_k=32",
    // Blocks of other tiles share the loads, and parts of one tile meet in the workspace.
    "wgmma:block_m=128,block_n=64,stages=4,consumers=2,cluster_m=2,cluster_n=2,split_k=4",
    "wgmma:block_m=64,block_n=32,stages=5,consumers=1,cluster_m=1,cluster_n=2,split_k=9",
    "wgmma:block_m=192,block_n=96,stages=3,consumers=3,cluster_m=2,cluster_n=1,split_k=2",
    "wgmma:block_m=64,block_n=64,stages=4,consumers=1,cluster_m=1,cluster_n=4,split_k=3",
    "wgmma:block_m=64,block_n=32,stages=3,consumers=1,cluster_m=2,cluster_n=4,split_k=2",
    // What the other part gives takes more shared memory than the ring.
    "wgmma:block_m=128,block_n=256,block_k=64,stages=2,consumers=2,split_k=2",
    "mma:block_m=32,block_n=32,stages=4,warps_m=2,warps_n=2,split_k=2",
    "mma:block_m=16,block_n=64,stages=3,warps_m=1,warps_n=2,split_k=3",
    "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=1,warps_n=1,split_k=8",
    "mma:block_m=64,block_n=64,block_k=32,stages=2,warps_m=2,warps_n=4,split_k=16",
    "mma:block_m=128,block_n=64,block_k=32,stages=3,warps_m=4,warps_n=2,split_k=5",
};

Config config_of(const std::string& text, DType dtype) {
  const bool given = text.find("block_k") != std::string::npos;
  const std::string block_k = storage_bytes(dtype) == 4 ? ",block_k=32" : ",block_k=64";
  const auto config = parse_config(given ? text : text + block_k, *find_family("gemm"));
  REQUIRE(config);
  return *config;
}

// The configs that serve the problem on this GPU, compiled: none of bf16, tf32 and fp32 on Turing.
std::vector<Config> configs_for(const gpu::Workbench& bench, const Problem& problem) {
  const DeviceSpec& device = bench.gpu().spec;
  search::Limits limits;
  limits.keep_slow = true;
  std::vector<Config> configs;
  for (const std::string& text : kConfigs) {
    const Config config = config_of(text, problem.dtype);
    if (!config.kernel->unsupported(traits_of(problem), device).empty()) continue;
    if (search::check_all(config, problem, device, limits).empty()) configs.push_back(config);
  }
  CHECK((!configs.empty() || device.limits.cc == 75));
  std::vector<std::pair<Config, Problem>> wanted;
  for (const Config& config : configs) wanted.emplace_back(config, problem);
  test::compile_ahead(wanted, device);
  return configs;
}

// A compiled config on operands that others may use as well.
class Run {
 public:
  Run(gpu::Workbench& bench, gpu::Operands& operands, const Config& config, int max_sms = 0)
      : bench_(bench), operands_(operands) {
    const Problem& problem = operands.problem();
    const DeviceSpec& device = bench.gpu().spec;
    const gpu::CompiledCode code = test::compile(config, problem, device);
    INFO(code.log);
    REQUIRE(code.ok);
    kernel_.emplace(gpu::LoadedKernel::load(code.cubin, config.kernel->entry()).value());
    REQUIRE(operands.reserve_workspace(
        bench, config.kernel->resources(config, problem, device, max_sms).workspace_bytes));
    plan_ = config.kernel->launch_plan(config, problem, kernel_->placed(device),
                                       operands.pointers(), max_sms);
    const auto refused = kernel_->prepare(plan_);
    REQUIRE(refused);
    REQUIRE_FALSE(*refused);
  }
  void launch() { REQUIRE(kernel_->launch(plan_, bench_.stream())); }
  void launch_and_verify() {
    REQUIRE(operands_.poison(bench_));
    launch();
    REQUIRE(bench_.synchronize());
    const auto result = operands_.verify(bench_);
    REQUIRE(result);
    INFO(result->what);
    REQUIRE(result->ok);
  }

 private:
  gpu::Workbench& bench_;
  gpu::Operands& operands_;
  std::optional<gpu::LoadedKernel> kernel_;
  LaunchPlan plan_;
};

gpu::Operands operands_of(gpu::Workbench& bench, const Problem& problem) {
  auto made = gpu::Operands::create(bench, problem, 1);
  REQUIRE(made);
  // Before any launch plan holds its address: enough for every config here.
  REQUIRE(made->reserve_workspace(bench, 64 << 20));
  return *std::move(made);
}

bool marks_are_zero(gpu::Workbench& bench, const gpu::Operands& operands) {
  std::vector<char> marks(kWorkspaceMarkBytes);
  REQUIRE(bench.download(marks.data(), operands.pointers().workspace, marks.size()));
  return std::all_of(marks.begin(), marks.end(), [](char mark) { return mark == 0; });
}

}  // namespace

TEST_CASE("k in parts gives right results in every type, with beta and rows of odd length",
          "[spread]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  std::vector<Problem> problems{
      test::gemm(200, 312, 1000, DType::bf16, Layout::tn),
      test::gemm(100, 512, 1528, DType::fp16, Layout::tn),
      test::gemm(16, 264, 4104, DType::bf16, Layout::tt),
      test::gemm(136, 200, 2056, DType::fp16, Layout::nn),
      test::gemm(129, 77, 2048, DType::bf16, Layout::tn),  // C's rows begin anywhere
      test::gemm(40, 136, 1028, DType::tf32, Layout::tn),
      test::gemm(70, 80, 64, DType::bf16, Layout::tn),  // fewer k tiles than parts
      test::gemm(100, 512, 1524, DType::fp32, Layout::tt),
      test::gemm(45, 77, 1001, DType::fp32, Layout::nn),
      test::gemm(33, 100, 259, DType::tf32, Layout::nt),
      test::gemm(33, 101, 515, DType::bf16, Layout::nt),
  };
  problems.push_back(problems[0]);
  problems.back().beta = 0.5;
  problems.push_back(problems[4]);
  problems.back().beta = -2;
  problems.push_back(problems[8]);
  problems.back().beta = 0.5;
  for (const Problem& problem : problems) {
    gpu::Operands operands = operands_of(*bench, problem);
    for (const Config& config : configs_for(*bench, problem)) {
      INFO(describe(problem) << " with " << to_string(config));
      Run(*bench, operands, config).launch_and_verify();
      CHECK(marks_are_zero(*bench, operands));
    }
  }
}

TEST_CASE("blocks that take several units one after another are right as well", "[spread]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem problem = test::gemm(300, 520, 2056, DType::fp16, Layout::tn);
  gpu::Operands operands = operands_of(*bench, problem);
  for (const Config& config : configs_for(*bench, problem)) {
    for (const int max_sms : {1, 24}) {
      INFO(to_string(config) << " on " << max_sms << " SMs");
      Run run(*bench, operands, config, max_sms);
      run.launch_and_verify();
      run.launch_and_verify();
    }
  }
}

TEST_CASE("200 launches give the same bits, whatever the order in which the parts come") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    const Problem problem = test::gemm(256, 512, 16392, dtype, Layout::tn);
    gpu::Operands operands = operands_of(*bench, problem);
    const auto bytes = static_cast<std::size_t>(problem.m * problem.ldc * storage_bytes(dtype));
    const auto first = gpu::DeviceMemory::allocate(bytes);
    REQUIRE(first);
    for (const Config& config : configs_for(*bench, problem)) {
      INFO(describe(problem) << " with " << to_string(config));
      Run run(*bench, operands, config);
      run.launch_and_verify();
      REQUIRE(bench->copy(first->address(), operands.pointers().c, bytes));
      for (int launch = 1; launch < 200; ++launch) {
        REQUIRE(operands.poison(*bench));
        run.launch();
        const auto differences =
            bench->count_differences(operands.pointers().c, first->address(), bytes);
        REQUIRE(differences);
        REQUIRE(*differences == 0);
      }
      CHECK(marks_are_zero(*bench, operands));
    }
  }
}

TEST_CASE("kernels of different tiles take turns in one workspace, without a wait between them",
          "[spread]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem problem = test::gemm(256, 512, 8200, DType::fp16, Layout::tn);
  gpu::Operands operands = operands_of(*bench, problem);
  std::vector<Run> runs;
  for (const Config& config : configs_for(*bench, problem)) {
    runs.emplace_back(*bench, operands, config);
  }
  for (int round = 0; round < 50; ++round) {
    for (Run& run : runs) run.launch();
  }
  for (Run& run : runs) run.launch_and_verify();
  CHECK(marks_are_zero(*bench, operands));
}

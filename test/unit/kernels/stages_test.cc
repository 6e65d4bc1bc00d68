// An MLP as the two kernels that it takes: problems, configs, code, workspace and launches.
#include "kernels/stages.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "kernels/gemm/args.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

Problem given(const char* family = "geglu_mlp") {
  Problem problem;
  problem.family = family;
  problem.m = 100;
  problem.n = 1524;
  problem.k = 4096;
  return problem;
}

Problem whole(const Problem& problem = given()) {
  const auto result = checked(problem);
  REQUIRE(result);
  return *result;
}

Problem with(DType dtype, Layout layout) {
  Problem problem = given();
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  problem.layout = layout;
  return whole(problem);
}

Config config_of(const std::string& text, const char* family = "geglu_mlp") {
  const auto config = parse_config(text, *find_family(family));
  REQUIRE(config);
  return *config;
}

DeviceSpec device(int cc = 90) {
  DeviceSpec spec;
  spec.sm_count = 132;
  spec.limits.cc = cc;
  spec.limits.smem_per_sm = 233472;
  spec.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  return spec;
}

// Its second kernel leaves partial sums in the workspace.
const char* const kWithSums =
    "wgmma:block_m=64,block_n=64,block_k=64,stages=4 + mma:block_m=64,block_n=32,split_k=4";

Resources needs(const Config& config, const Problem& problem, std::size_t stage) {
  const Config own = stage_of(config, stage);
  return own.kernel->resources(own, stage_of(problem, stage), device(), 0);
}

constexpr DevicePointers kAt{0x10000, 0x20000, 0x30000, 0x1000000, 0x40000, 0x50000};

TEST_CASE("any other problem is its own single stage") {
  for (const char* family : {"gemm", "geglu"}) {
    const Problem problem = whole(given(family));
    CHECK(stage_count(problem) == 1);
    CHECK(stage_of(problem, 0) == problem);
    CHECK(&stage_of(*find_family(family), 0) == find_family(family));
  }
}

TEST_CASE("an MLP is a gated product and a product that takes its result down") {
  Problem problem = given();
  problem.activation = Activation::silu;
  problem.out_dtype = DType::fp32;
  problem.mode = TimingMode::hot;
  problem.lda = 4104;
  problem.ldb = 4112;
  problem.ldc = 4100;
  problem = whole(problem);
  REQUIRE(stage_count(problem) == 2);

  Problem gated = given("geglu");
  gated.activation = Activation::silu;
  gated.mode = TimingMode::hot;
  gated.lda = 4104;
  gated.ldb = 4112;
  CHECK(stage_of(problem, 0) == whole(gated));

  Problem down = given("gemm");
  std::swap(down.n, down.k);
  down.out_dtype = DType::fp32;
  down.mode = TimingMode::hot;
  down.ldc = 4100;
  CHECK(stage_of(problem, 1) == whole(down));

  const Family& family = *find_family("geglu_mlp");
  CHECK(family.kernels.empty());
  CHECK(&stage_of(family, 0) == find_family("geglu"));
  CHECK(&stage_of(family, 1) == find_family("gemm"));
}

TEST_CASE("the second stage reads rows, and weights that lie as the first stage's do") {
  const auto [layout, down, ldb] =
      GENERATE(table<Layout, Layout, int>({{Layout::tn, Layout::tn, 1524},
                                           {Layout::nn, Layout::tn, 1524},
                                           {Layout::tt, Layout::tt, 4096},
                                           {Layout::nt, Layout::tt, 4096}}));
  const Problem problem = with(DType::bf16, layout);
  CHECK(stage_of(problem, 0).layout == layout);
  const Problem second = stage_of(problem, 1);
  CHECK(second.layout == down);
  CHECK(second.lda == 1524);
  CHECK(second.ldb == ldb);
  CHECK(second.ldc == 4096);
}

TEST_CASE("the intermediate is stored as the dtype is, tf32 as fp32") {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    Problem problem = with(dtype, Layout::tn);
    problem.out_dtype = DType::fp32;
    CHECK(stage_of(problem, 0).out_dtype == default_out_dtype(dtype));
    CHECK(stage_of(problem, 1).dtype == dtype);
    CHECK(stage_of(problem, 1).out_dtype == DType::fp32);
  }
  Problem exact = with(DType::fp32, Layout::tn);
  exact.exact_fp32 = true;
  CHECK(stage_of(exact, 0).exact_fp32);
  CHECK(stage_of(exact, 1).exact_fp32);
}

TEST_CASE("stages are as checked() leaves them") {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
      for (const std::int64_t size : {1, 3, 100}) {
        Problem problem = given();
        problem.m = problem.n = problem.k = size;
        problem.dtype = dtype;
        problem.out_dtype = default_out_dtype(dtype);
        problem.layout = layout;
        problem = whole(problem);
        for (const std::size_t stage : {0, 1}) {
          CAPTURE(describe(problem), stage);
          CHECK(whole(stage_of(problem, stage)) == stage_of(problem, stage));
        }
      }
    }
  }
}

TEST_CASE("a whole's source hash is that of both kernels") {
  const Problem problem = whole();
  const Config joined = config_of("mma:stages=3 + mma:stages=4");
  const auto of = [&](const char* text, const Problem& asked) {
    return source_hash(config_of(text), asked, device());
  };
  const std::string hash = of("mma:stages=3 + mma:stages=4", problem);
  CHECK(hash.size() == 64);
  CHECK(hash ==
        joint_hash({source_hash(stage_of(joined, 0), traits_of(stage_of(problem, 0)), device()),
                    source_hash(stage_of(joined, 1), traits_of(stage_of(problem, 1)), device())}));
  CHECK(hash == of("mma:stages=3,swizzle=4 + mma:stages=4,raster=1", problem));
  Problem relu = problem;
  relu.activation = Activation::relu;
  Problem wide = problem;
  wide.out_dtype = DType::fp32;  // of the second alone
  const std::set<std::string> all{hash,
                                  of("mma:stages=2 + mma:stages=4", problem),
                                  of("mma:stages=3 + mma:stages=2", problem),
                                  of("mma:stages=4 + mma:stages=3", problem),
                                  of("mma:stages=3 + mma:stages=4", relu),
                                  of("mma:stages=3 + mma:stages=4", wide)};
  CHECK(all.size() == 6);

  const Problem single = whole(given("gemm"));
  const Config config = config_of("mma:stages=3", "gemm");
  CHECK(source_hash(config, single, device()) == source_hash(config, traits_of(single), device()));
  CHECK(joint_hash({"one"}) == "one");
}

TEST_CASE("the intermediate lies in the workspace, behind the marks and what the kernels need") {
  const Problem problem = whole();
  const StageWorkspace alone = workspace_of(config_of("mma + mma"), problem, device(), 0);
  CHECK(alone.intermediate == kWorkspaceMarkBytes);
  CHECK(alone.bytes == kWorkspaceMarkBytes + 100 * 1524 * 2);

  const Config sums = config_of(kWithSums);
  const std::int64_t of_sums = needs(sums, problem, 1).workspace_bytes;
  REQUIRE(needs(sums, problem, 0).workspace_bytes == 0);
  REQUIRE(of_sums > kWorkspaceMarkBytes);
  const StageWorkspace both = workspace_of(sums, problem, device(), 0);
  CHECK(both.intermediate >= of_sums);
  CHECK(both.intermediate < of_sums + 256);
  CHECK(both.intermediate % 256 == 0);
  CHECK(both.bytes == both.intermediate + 100 * 1524 * 2);

  const Problem wide = with(DType::tf32, Layout::tn);
  CHECK(workspace_of(config_of("mma + mma"), wide, device(), 0).bytes ==
        kWorkspaceMarkBytes + 100 * 1524 * 4);

  Problem huge = wide;
  huge.m = huge.n = (std::int64_t{1} << 31) - 1;
  huge.ldb = huge.n;
  CHECK(workspace_of(config_of("mma + mma"), huge, device(), 0).bytes > 0);
}

TEST_CASE("a single stage's workspace is its kernel's") {
  const Problem problem = whole(given("gemm"));
  const Config plain = config_of("mma", "gemm");
  CHECK(workspace_of(plain, problem, device(), 0).bytes == 0);
  const Config sums = config_of("wgmma:block_m=64,block_n=64,block_k=64,split_k=16", "gemm");
  const StageWorkspace workspace = workspace_of(sums, problem, device(), 0);
  CHECK(workspace.intermediate == 0);
  CHECK(workspace.bytes == sums.kernel->resources(sums, problem, device(), 0).workspace_bytes);
  CHECK(workspace.bytes > 0);
}

TEST_CASE("the first stage writes where the second reads") {
  const StageWorkspace workspace{512, 4096};
  const DevicePointers first = stage_pointers(whole(), 0, kAt, workspace);
  CHECK(first.a == kAt.a);
  CHECK(first.b == kAt.b);
  CHECK(first.up == kAt.up);
  CHECK(first.c == kAt.workspace + 512);
  const DevicePointers second = stage_pointers(whole(), 1, kAt, workspace);
  CHECK(second.a == first.c);
  CHECK(second.b == kAt.down);
  CHECK(second.up == 0);
  CHECK(second.c == kAt.c);
  for (const DevicePointers& each : {first, second}) {
    CHECK(each.workspace == kAt.workspace);
    CHECK(each.down == 0);
  }
  const DevicePointers gated = stage_pointers(whole(given("geglu")), 0, kAt, {});
  CHECK(gated.c == kAt.c);
  CHECK(gated.up == kAt.up);
}

TEST_CASE("a stage's launch is its kernel's own, and the second follows the first from Hopper on") {
  const Problem problem = whole();
  const Config config = config_of(kWithSums);
  for (const int cc : {80, 89, 90, 100}) {
    const StageWorkspace workspace = workspace_of(config, problem, device(cc), 0);
    for (const std::size_t stage : {0, 1}) {
      CAPTURE(cc, stage);
      const LaunchPlan plan = stage_launch(config, problem, stage, device(cc), kAt, workspace, 0);
      CHECK(plan.follows == (stage == 1 && cc >= 90));
      const Config own = stage_of(config, stage);
      DevicePointers pointers = stage_pointers(problem, stage, kAt, workspace);
      pointers.link = Link::none;
      const LaunchPlan alone =
          own.kernel->launch_plan(own, stage_of(problem, stage), device(cc), pointers, 0);
      CHECK(plan.grid == alone.grid);
      CHECK(plan.block == alone.block);
      CHECK(plan.params == alone.params);
      CHECK_FALSE(alone.follows);
    }
  }
  const Problem single = whole(given("gemm"));
  CHECK_FALSE(stage_launch(config_of("mma", "gemm"), single, 0, device(), kAt, {}, 0).follows);
}

TEST_CASE("the second stage is admitted early where its blocks take an SM each") {
  const Problem problem = whole();
  const auto admits = [&](const char* second, int cc) {
    const Config config = config_of(std::string("mma + ") + second);
    const LaunchPlan plan = stage_launch(config, problem, 0, device(cc), kAt,
                                         workspace_of(config, problem, device(cc), 0), 0);
    GemmArgs args;
    std::memcpy(&args, plan.params.data(), sizeof(args));
    return (args.flags & GemmArgs::kAdmits) != 0;
  };
  constexpr const char* kLarge = "mma:block_m=128,block_n=128,block_k=64,stages=4";
  CHECK(admits(kLarge, 90));
  CHECK_FALSE(admits(kLarge, 89));
  CHECK_FALSE(admits("mma:block_m=64,block_n=64,block_k=32,stages=2", 90));
  // Blocks that wait for each other need all of the room at once.
  CHECK(admits("wgmma:block_m=128,block_n=128,block_k=64,stages=5", 90));
  CHECK_FALSE(admits("wgmma:block_m=128,block_n=128,block_k=64,stages=5,split_k=16", 90));
}

TEST_CASE("a whole needs the larger block of its kernels, and one workspace for both") {
  const Problem problem = whole();
  const Config config = config_of(kWithSums);
  const Resources first = needs(config, problem, 0);
  const Resources second = needs(config, problem, 1);
  REQUIRE(first.threads != second.threads);
  const Resources both = resources_of(config, problem, device(), 0);
  CHECK(both.smem_bytes == std::max(first.smem_bytes, second.smem_bytes));
  CHECK(both.threads == std::max(first.threads, second.threads));
  CHECK(both.registers == std::max(first.registers, second.registers));
  CHECK(both.workspace_bytes == workspace_of(config, problem, device(), 0).bytes);
  const Config swapped = config_of("mma:block_m=64,block_n=32 + wgmma:block_m=64");
  const Resources larger = needs(swapped, problem, 1);
  REQUIRE(larger.smem_bytes > needs(swapped, problem, 0).smem_bytes);
  REQUIRE(larger.threads > needs(swapped, problem, 0).threads);
  REQUIRE(larger.registers > needs(swapped, problem, 0).registers);
  const Resources swapped_both = resources_of(swapped, problem, device(), 0);
  CHECK(swapped_both.smem_bytes == larger.smem_bytes);
  CHECK(swapped_both.threads == larger.threads);
  CHECK(swapped_both.registers == larger.registers);

  const Problem single = whole(given("gemm"));
  const Config mma = config_of("mma", "gemm");
  CHECK(resources_of(mma, single, device(), 0).smem_bytes ==
        mma.kernel->resources(mma, single, device(), 0).smem_bytes);
}

}  // namespace
}  // namespace autotune

// The MLP of two kernels on the GPU: whole results over types, layouts, activations and ragged
// sizes, and that the second kernel never reads what the first has not written yet.
#include <Eigen/Dense>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autotune/autotune.h"
#include "autotune/lookup/answer.h"
#include "kernels/stages.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/elements.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Problem mlp(std::int64_t tokens, std::int64_t hidden, std::int64_t intermediate, DType dtype,
            Layout layout, Activation activation = Activation::gelu_tanh) {
  Problem problem = test::geglu(tokens, intermediate, hidden, dtype, layout, activation);
  problem.family = "geglu_mlp";
  problem.ldc = 0;
  return checked(problem).value();
}

Config default_pair(const Problem& problem, const DeviceSpec& device) {
  return join(test::default_config(stage_of(problem, 0), device).config,
              test::default_config(stage_of(problem, 1), device).config);
}

worker::Contender contender(const Config& pair, const Problem& problem, const DeviceSpec& device) {
  worker::Contender made;
  made.config = to_string(pair);
  for (std::size_t i = 0; i < 2; ++i) {
    gpu::CompiledCode code = test::compile(stage_of(pair, i), stage_of(problem, i), device);
    INFO(code.log);
    REQUIRE(code.ok);
    (i == 0 ? made.cubin : made.second_cubin) = std::move(code.cubin);
  }
  return made;
}

void check(gpu::Measurer& measurer, const Problem& problem, const Config& pair) {
  INFO(describe(problem) << " with " << to_string(pair));
  worker::CompareRequest request;
  request.problem = problem;
  request.contenders = {contender(pair, problem, measurer.gpu().spec)};
  request.rounds = 1;
  const auto reply = measurer.compare(request);
  INFO(reply.log);
  REQUIRE(reply.outcome == Outcome::ok);
  INFO(reply.sides[0].log);
  CHECK(reply.sides[0].outcome == Outcome::ok);
  REQUIRE(!measurer.lost());
}

constexpr const char* kWgmma = "wgmma:block_m=64,block_k=64,stages=3,consumers=1,pingpong=0";
constexpr const char* kWgmmaFp32 =
    "wgmma_fp32:block_m=64,block_n=32,block_k=32,stages=4,cut_stages=2,chains=2,cutters=3";
constexpr const char* kMma = "mma:block_m=16,block_n=64,block_k=64,stages=4,warps_m=1,warps_n=2";
constexpr const char* kSimt =
    "simt:block_m=32,block_n=32,block_k=16,stages=3,thread_m=4,thread_n=4";
constexpr const char* kGemv = "gemv:block_m=8,block_n=16,block_k=128,stages=4,warps_n=1,warps_k=4";

Config pair_of(const std::string& text) {
  const auto config = parse_config(text, *find_family("geglu_mlp"));
  REQUIRE(config);
  return *config;
}

bool is_served(const Config& pair, const Problem& problem, const DeviceSpec& device) {
  for (std::size_t i = 0; i < 2; ++i) {
    const KernelTraits traits = traits_of(stage_of(problem, i));
    if (!stage_of(pair, i).kernel->unsupported(traits, device).empty()) return false;
  }
  return true;
}

// Operands and a kernel for them, as a program has them.
struct Run {
  gpu::Workbench& bench;
  Problem problem;
  Kernel kernel;
  gpu::DeviceMemory x, gate, up, down, y, workspace;

  static gpu::DeviceMemory allocate(std::int64_t bytes) {
    auto memory = gpu::DeviceMemory::allocate(static_cast<std::size_t>(bytes));
    REQUIRE(memory);
    return *std::move(memory);
  }

  Run(gpu::Workbench& on, const Problem& of, Kernel made)
      : bench(on),
        problem(of),
        kernel(std::move(made)),
        x(allocate(of.m * of.k * storage_bytes(of.dtype))),
        gate(allocate(of.n * of.k * storage_bytes(of.dtype))),
        up(allocate(of.n * of.k * storage_bytes(of.dtype))),
        down(allocate(of.n * of.k * storage_bytes(of.dtype))),
        y(allocate(of.m * of.k * storage_bytes(of.out_dtype))),
        workspace(allocate(kernel.workspace_bytes())) {
    REQUIRE(bench.fill_bytes(workspace.address(), 0, workspace.bytes()));
    REQUIRE(bench.fill_normal(matrix_x(), 1, 1));
    const double scale = 1 / std::sqrt(static_cast<double>(problem.k));
    REQUIRE(bench.fill_normal(weights(gate), scale, 2));
    REQUIRE(bench.fill_normal(weights(up), scale, 3));
    REQUIRE(bench.fill_normal(matrix_down(), 1 / std::sqrt(static_cast<double>(problem.n)), 4));
  }

  gpu::Matrix matrix_x() const {
    return {x.address(), problem.dtype, problem.m, problem.k, problem.k, 1};
  }
  gpu::Matrix matrix_y() const {
    return {y.address(), problem.out_dtype, problem.m, problem.k, problem.k, 1};
  }
  gpu::Matrix weights(const gpu::DeviceMemory& memory) const {
    const bool k_major = b_is_k_major(problem.layout);
    return {memory.address(), problem.dtype,           problem.k,
            problem.n,        k_major ? 1 : problem.n, k_major ? problem.k : 1};
  }
  gpu::Matrix matrix_down() const {
    const bool k_major = b_is_k_major(problem.layout);
    return {down.address(), problem.dtype,           problem.n,
            problem.k,      k_major ? 1 : problem.k, k_major ? problem.n : 1};
  }

  void launch() const {
    const auto at = [](const gpu::DeviceMemory& memory) {
      return reinterpret_cast<void*>(memory.address());
    };
    const auto state =
        kernel.launch(at(x), at(gate), at(y), bench.stream(), at(workspace), at(up), at(down));
    if (!state) FAIL(state.error().message);
  }

  RowMajor on_host(const gpu::Matrix& matrix, const gpu::DeviceMemory& memory) const {
    const auto values = test::fetch(bench, matrix, memory.bytes());
    return Eigen::Map<const RowMajor>(values.data(), matrix.rows, matrix.columns);
  }
};

Run run_of(gpu::Workbench& bench, const Problem& problem, const std::string& config) {
  BestConfig best;
  best.problem = problem;
  best.device = bench.gpu().spec.name;
  best.config = config;
  BestOptions options;
  options.cache = "/dev/null/none";  // keeps nothing
  auto kernel = Kernel::load(best, options);
  if (!kernel) FAIL(kernel.error().message);
  return {bench, problem, *std::move(kernel)};
}

}  // namespace

// https://github.com/pytorch/helion/issues/470: the default config asked for 526336 bytes of shared
// memory, and no config gave a right result.
TEST_CASE("Helion issue 470: an MLP of 100 x 512 x 1524 in fp32 is right by default and tuned",
          "[spread]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Problem problem = mlp(100, 512, 1524, DType::fp32, Layout::tt);
  const DeviceSpec& device = bench->gpu().spec;
  lookup::Sources tuned;
  tuned.tuned = io::tuned_entries();
  for (const lookup::Sources& sources : {lookup::Sources{}, tuned}) {
    const auto best = lookup::answer(problem, device, sources);
    REQUIRE(best);
    INFO(best->config << ", " << to_string(best->match));
    const Run run = run_of(*bench, problem, best->config);
    run.launch();
    REQUIRE(bench->synchronize());
    const RowMajor x = run.on_host(run.matrix_x(), run.x);
    const RowMajor gates = x * run.on_host(run.weights(run.gate), run.gate);
    const RowMajor activated = gates.unaryExpr([](double g) {
      return 0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
    });
    const RowMajor intermediate =
        activated.cwiseProduct(x * run.on_host(run.weights(run.up), run.up));
    const RowMajor expected = intermediate * run.on_host(run.matrix_down(), run.down);
    const RowMajor y = run.on_host(run.matrix_y(), run.y);
    const auto allowed = 1e-4 + 1e-4 * expected.array().abs();
    CHECK(((y - expected).array().abs() <= allowed).all());
  }
}

TEST_CASE("MLPs of every type, layout and activation, whole and ragged", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  std::vector<std::pair<Config, Problem>> pairs;
  std::vector<std::pair<Config, Problem>> kernels;
  int turn = 0;
  for (const DType dtype : test::kAllDTypes) {
    for (const Layout layout : test::kAllLayouts) {
      const Activation activation = test::kAllActivations[turn++ % 4];
      for (const auto& [tokens, hidden, intermediate] : {std::tuple(256, 512, 384),
                                                         {100, 512, 1524},
                                                         {1, 256, 640},
                                                         {17, 131, 77},
                                                         {3, 40, 7}}) {
        const Problem problem = mlp(tokens, hidden, intermediate, dtype, layout, activation);
        pairs.emplace_back(default_pair(problem, device), problem);
        for (std::size_t i = 0; i < 2; ++i) {
          kernels.emplace_back(stage_of(pairs.back().first, i), stage_of(problem, i));
        }
      }
    }
  }
  test::compile_ahead(kernels, device);
  for (const auto& [pair, problem] : pairs) check(*measurer, problem, pair);
}

TEST_CASE("an MLP whose second stage splits k has one workspace for both", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const Problem problem = mlp(64, 512, 4096, DType::bf16, Layout::tn);
  for (const int parts : {2, 16}) {
    const Config pair = pair_of(std::string(kWgmma) + ",block_n=32 + " + kWgmma +
                                ",block_n=64,split_k=" + std::to_string(parts));
    if (!is_served(pair, problem, measurer->gpu().spec)) return;
    check(*measurer, problem, pair);
  }
}

TEST_CASE("pairs with and without parts of k share a workspace", "[spread]") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  const Problem problem = mlp(100, 512, 1524, DType::bf16, Layout::tn);
  const std::string whole = kMma + std::string(kJoint) + kMma;
  const std::string parts = whole + ",split_k=4";
  worker::CompareRequest request;
  request.problem = problem;
  for (const std::string& text : {parts, whole, parts}) {
    request.contenders.push_back(contender(pair_of(text), problem, device));
  }
  request.rounds = 3;
  for (int again = 0; again < 2; ++again) {
    const auto reply = measurer->compare(request);
    INFO(reply.log);
    REQUIRE(reply.outcome == Outcome::ok);
    for (const worker::Side& side : reply.sides) {
      INFO(side.log);
      CHECK(side.outcome == Outcome::ok);
    }
  }
}

TEST_CASE("the second kernel of an MLP waits for the first, launch after launch") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  constexpr int kLaunches = 200;
  // Second stages of every kernel; few blocks in the first, so that those of the second are early.
  const std::string wgmma = kWgmma;
  for (const auto& [dtype, text] :
       {std::pair(DType::bf16, kMma + std::string(kJoint) + kGemv),
        {DType::bf16, kMma + std::string(kJoint) + kMma},
        {DType::bf16, kMma + std::string(kJoint) + kMma + ",split_k=8"},
        {DType::bf16, wgmma + ",block_n=128 + " + wgmma + ",block_n=64"},
        {DType::bf16, wgmma + ",block_n=128 + " + wgmma + ",block_n=64,split_k=4"},
        {DType::bf16, wgmma + ",block_n=128 + " + wgmma + ",block_n=128,split_k=9"},
        {DType::fp32, kSimt + std::string(kJoint) + kSimt},
        {DType::fp32, kWgmmaFp32 + std::string(kJoint) + kWgmmaFp32}}) {
    const Problem problem = mlp(8, 1024, 2048, dtype, Layout::tn);
    if (!is_served(pair_of(text), problem, bench->gpu().spec)) continue;
    INFO(text);
    const Run run = run_of(*bench, problem, to_string(pair_of(text)));
    const auto intermediate = static_cast<std::uint64_t>(
        workspace_of(pair_of(text), problem, bench->gpu().spec, 0).intermediate);
    run.launch();
    auto first = gpu::DeviceMemory::allocate(run.y.bytes());
    REQUIRE(first);
    REQUIRE(bench->copy(first->address(), run.y.address(), run.y.bytes()));
    std::int64_t differences = 0;
    for (int i = 0; i < kLaunches; ++i) {
      // What a kernel that does not wait would read.
      REQUIRE(bench->fill_bytes(run.workspace.address() + intermediate, 0xff,
                                run.workspace.bytes() - intermediate));
      run.launch();
      run.launch();
      const auto found = bench->count_differences(first->address(), run.y.address(), run.y.bytes());
      REQUIRE(found);
      differences += *found;
    }
    CHECK(differences == 0);
  }
}

TEST_CASE("the baseline of an MLP is three or two products and an elementwise kernel") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const Problem problem = mlp(100, 256, 512, dtype, Layout::tn, Activation::silu);
    worker::CompareRequest request;
    request.problem = problem;
    request.contenders = {
        contender(default_pair(problem, measurer->gpu().spec), problem, measurer->gpu().spec)};
    request.baseline = true;
    request.rounds = 5;
    const auto reply = measurer->compare(request);
    INFO(reply.log);
    REQUIRE(reply.outcome == Outcome::ok);
    REQUIRE(reply.sides.size() == 2);
    CHECK(reply.baseline.find("elementwise kernel + cublas") != std::string::npos);
    CHECK(reply.sides[1].measurement.result_error < (dtype == DType::fp32 ? 2e-5 : 9e-3));
  }
}

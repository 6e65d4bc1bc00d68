// Kernels of a session on the GPU: right results directly and from a captured graph, with nothing
// compiled, nothing allocated and nothing left behind.
#include "autotune/session.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "autotune/gpu/handles.h"
#include "autotune/gpu/operands.h"
#include "cache/store.h"
#include "kernels/device_spec.h"
#include "kernels/problem.h"
#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"

namespace {
thread_local long allocations = 0;
}  // namespace

// Counts what this whole program allocates; the test looks at the difference. Not inline, or g++ 12
// sees free() beside operator new.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace autotune;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("autotune_session_gpu_" + std::to_string(getpid()));
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

struct Subject {
  gpu::Workbench& bench;
  gpu::Operands operands;
  Kernel kernel;

  Expected<void> launch(void* stream) {
    const DevicePointers at = operands.pointers();
    const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
    return kernel.launch(pointer(at.a), pointer(at.b), pointer(at.c), stream, pointer(at.workspace),
                         pointer(at.up));
  }
  void poison() { REQUIRE(operands.poison(bench)); }
  void check() {
    REQUIRE(bench.synchronize());
    const auto result = operands.verify(bench);
    REQUIRE(result);
    INFO(result->what);
    CHECK(result->ok);
  }
};

Subject subject_for(gpu::Workbench& bench, const Problem& problem, Kernel kernel) {
  auto operands = gpu::Operands::create(bench, problem, 1);
  REQUIRE(operands);
  REQUIRE(operands->reserve_workspace(bench, kernel.workspace_bytes()));
  return Subject{bench, *std::move(operands), std::move(kernel)};
}

// Launches into a graph, then runs that.
void replay(Subject& subject, int times) {
  const gpu::DriverApi& api = **gpu::driver();
  auto* stream = static_cast<CUstream>(subject.bench.stream());
  // Not even the other threads may do what a capture forbids.
  REQUIRE(api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(subject.launch(stream));
  CUgraph captured = nullptr;
  REQUIRE(api.cuStreamEndCapture(stream, &captured) == CUDA_SUCCESS);
  const gpu::Graph graph(captured);
  CUgraphExec raw = nullptr;
  REQUIRE(api.cuGraphInstantiate(&raw, graph.get(), 0) == CUDA_SUCCESS);
  const gpu::GraphExec executable(raw);
  for (int i = 0; i < times; ++i) {
    subject.poison();
    REQUIRE(api.cuGraphLaunch(executable.get(), stream) == CUDA_SUCCESS);
    subject.check();
  }
}

// As tuning leaves it.
void store_winner(const std::filesystem::path& file, const Problem& problem, const BestConfig& best,
                  const DeviceSpec& device) {
  const auto config = parse_config(best.config, *find_family(problem.family));
  REQUIRE(config);
  cache::WinnerRecord winner;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(device), best.config,
                      source_hash(*config, traits_of(problem), device), "nvrtc 13.0"};
  winner.trial.measurement.median_us = 100;
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store);
  const cache::RunInfo info{fingerprint(device), device.name, "nvrtc 13.0", "", "0", "{}", "test"};
  REQUIRE(store->adopt("test", info, 1, {winner}));
}

}  // namespace

TEST_CASE("a session's kernel: compiled once, then from the cache; launched, captured, replayed") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Folder folder;
  SessionOptions options;
  options.cache = folder.path / "cache.db";
  // Each with a config, the default one where there is none.
  std::vector<std::pair<Problem, std::string>> cases{
      {test::gemm(512, 512, 512, DType::bf16, Layout::tn), ""},
      {test::gemm(17, 512, 512, DType::bf16, Layout::tn), ""},
      {test::geglu(100, 512, 512, DType::bf16, Layout::tn, Activation::silu), ""}};
  if (bench->gpu().spec.limits.cc == 90) {  // its cluster is told where to begin
    cases.emplace_back(test::gemm(256, 512, 1024, DType::bf16, Layout::tn),
                       "wgmma:block_m=64,block_n=64,stages=4,consumers=1,cluster_m=2,cluster_n=1");
  }
  for (const auto& [problem, text] : cases) {
    options.allow_compile = true;
    BestConfig best;
    {
      const auto first = Session::open(options);
      if (!first) FAIL(first.error().message);
      best = *first->best_config(problem);
      if (!text.empty()) best.config = to_string(*parse_config(text, *find_family("gemm")));
      // Without a compiler only what was tuned is an answer.
      store_winner(options.cache, problem, best, bench->gpu().spec);
    }
    {
      const auto second = Session::open(options);
      if (!second) FAIL(second.error().message);
      const auto compiled = second->kernel(problem);
      if (!compiled) FAIL(compiled.error().message);
    }
    options.allow_compile = false;
    auto session = Session::open(options);
    if (!session) FAIL(session.error().message);
    CHECK(session->best_config(problem)->config == best.config);
    auto kernel = session->kernel(problem);
    if (!kernel) FAIL(kernel.error().message);
    Subject subject = subject_for(*bench, problem, *std::move(kernel));

    subject.poison();
    REQUIRE(subject.launch(bench->stream()));
    subject.check();
    replay(subject, 2);

    const long before = allocations;
    const bool launched = subject.launch(bench->stream()).has_value();
    const long after = allocations;
    CHECK(launched);
    CHECK(after == before);

    // A refusal costs the next launch nothing.
    CHECK(subject.kernel.launch(nullptr, nullptr, nullptr).error().code == ErrorCode::bad_input);
    subject.poison();
    REQUIRE(subject.launch(bench->stream()));
    subject.check();
  }
}

// Every kernel compiles for every architecture with nothing but its own text, and its cubin is what
// its host twin predicted.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autotune/gpu/gpcs.h"
#include "autotune/gpu/nvrtc.h"
#include "kernels/kernel.h"
#include "search/plan.h"
#include "test/compile/architectures.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

struct Job {
  const DeviceSpec* device;
  Problem problem;
  search::Candidate candidate;
};

Problem product(DType dtype, Layout layout, std::int64_t m = 1000, const char* family = "gemm",
                std::int64_t n = 1524) {
  Problem problem;
  problem.family = family;
  problem.m = m;
  problem.n = n;
  problem.k = 4096;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  problem.layout = layout;
  return checked(problem).value();
}

Problem exact(Problem problem) {
  problem.exact_fp32 = true;
  return problem;
}

constexpr DType kDTypes[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};
constexpr Layout kLayouts[] = {Layout::tn, Layout::tt, Layout::nn, Layout::nt};

gpu::CompiledCode compile(const Job& job) {
  const Config& config = job.candidate.config;
  const auto definitions = config.kernel->definitions(config, traits_of(job.problem), *job.device);
  return (*gpu::nvrtc())
      ->compile({config.kernel->source().text, config.kernel->entry(), job.device->limits.arch,
                 definitions});
}

// What is wrong with the compiled job; empty where nothing is.
std::string complaint(const Job& job) {
  const gpu::CompiledCode code = compile(job);
  const std::string name = describe(job.problem) + " " + to_string(job.candidate.config) + " " +
                           job.device->limits.arch + ": ";
  if (!code.ok) return name + code.log;
  const std::string_view source = job.candidate.config.kernel->source().text;
  const bool tells = source.find(gpu::kWhereEntry) != std::string_view::npos &&
                     job.candidate.resources.cluster > 1;
  if ((code.cubin.find(gpu::kWhereEntry) != std::string::npos) != tells) {
    return name + "has the entry that tells where clusters run, and none, or the other way round";
  }
  if (const auto verdict =
          search::check_compiled(job.candidate.resources, code.actual, *job.device))
    return name + describe(*verdict, *job.device);
  const std::string difference = search::mismatch(job.candidate.resources, code.actual);
  return difference.empty() ? "" : name + difference;
}

// Runs the jobs on all cores and returns the complaints.
std::vector<std::string> run(const std::vector<Job>& jobs) {
  std::vector<std::string> complaints;
  std::mutex lock;
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next++; job < jobs.size(); job = next++) {
        std::string text = complaint(jobs[job]);
        const std::lock_guard<std::mutex> hold(lock);
        if (!text.empty()) complaints.push_back(std::move(text));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return complaints;
}

}  // namespace

TEST_CASE("default configs compile for every architecture as predicted") {
  const search::Space* space = io::default_space("gemm");
  REQUIRE(space != nullptr);
  std::vector<Job> jobs;
  int turn = 0;
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    for (const DType dtype : kDTypes) {
      for (const Layout layout : kLayouts) {
        // Every combination on Hopper, elsewhere every dtype in a layout of its turn.
        if (device->limits.cc != 90 && layout != kLayouts[turn % 4]) continue;
        const Problem problem = product(dtype, layout);
        auto candidate = search::default_candidate(problem, *device, *space, {});
        if (!candidate) {
          // Only what the tensor cores of an architecture cannot multiply has no kernel.
          CHECK(device->limits.cc == 75);
          CHECK(dtype != DType::fp16);
          CHECK(dtype != DType::fp32);
          continue;
        }
        jobs.push_back({device, problem, *candidate});
        // One row has kernels of its own.
        const Problem row = product(dtype, layout, 1);
        candidate = search::default_candidate(row, *device, *space, {});
        REQUIRE(candidate);
        jobs.push_back({device, row, *candidate});
        if (device->limits.cc == 90) {  // rows of C that the copy engine stores in every type
          const Problem whole = product(dtype, layout, 1024, "gemm", 1536);
          candidate = search::default_candidate(whole, *device, *space, {});
          REQUIRE(candidate);
          jobs.push_back({device, whole, *candidate});
        }
        if (dtype != DType::fp32) continue;
        candidate = search::default_candidate(exact(problem), *device, *space, {});
        REQUIRE(candidate);
        jobs.push_back({device, exact(problem), *candidate});
      }
      ++turn;
    }
    ++turn;  // else each architecture would have the same layout for a dtype
  }
  REQUIRE(jobs.size() >= 100);
  for (const std::string& text : run(jobs)) FAIL_CHECK(text);
}

TEST_CASE("gated kernels compile with every activation and dtype on every architecture") {
  const search::Space* space = io::default_space("geglu");
  REQUIRE(space != nullptr);
  std::vector<Job> jobs;
  int architecture = 0;
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    std::set<DType> dtypes;
    std::set<Activation> activations;
    for (int type = 0; type < 4; ++type) {
      for (int in = 0; in < 4; ++in) {
        // Every layout on Hopper, elsewhere one of its turn.
        const bool hopper = device->limits.cc == 90;
        if (!hopper && in != (type + architecture) % 4) continue;
        Problem problem = product(kDTypes[type], kLayouts[in], 1000, "geglu");
        problem.activation = static_cast<Activation>((type + architecture + (hopper ? in : 0)) % 4);
        const auto candidate = search::default_candidate(problem, *device, *space, {});
        CHECK((candidate || device->limits.cc == 75));
        if (!candidate) continue;
        jobs.push_back({device, problem, *candidate});
        dtypes.insert(problem.dtype);
        activations.insert(problem.activation);
      }
    }
    ++architecture;
    INFO(device->name);
    const std::size_t all = device->limits.cc == 75 ? 2 : 4;
    CHECK(dtypes.size() == all);
    CHECK(activations.size() == all);
  }
  for (const std::string& text : run(jobs)) FAIL_CHECK(text);
}

TEST_CASE("a shared-memory offset or size that is off by one does not compile") {
  const DeviceSpec* device = io::find_device("NVIDIA H200");
  REQUIRE(device != nullptr);
  const Problem fp32 = product(DType::fp32, Layout::tn);
  for (const Problem& problem :
       {product(DType::bf16, Layout::tn), fp32, exact(fp32), product(DType::bf16, Layout::tn, 1),
        product(DType::bf16, Layout::tn, 1000, "geglu"),
        product(DType::fp32, Layout::tn, 1000, "geglu"),
        product(DType::tf32, Layout::tt, 1000, "geglu")}) {
    const search::Space* space = io::default_space(problem.family);
    const auto candidate = search::default_candidate(problem, *device, *space, {});
    REQUIRE(candidate);
    const Config& config = candidate->config;
    const auto right = config.kernel->definitions(config, traits_of(problem), *device);
    int changed = 0;
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (right[i].first.rfind("SMEM_", 0) != 0) continue;
      auto wrong = right;
      wrong[i].second = std::to_string(std::stoll(right[i].second) + 1);
      const auto code = (*gpu::nvrtc())
                            ->compile({config.kernel->source().text, config.kernel->entry(),
                                       device->limits.arch, wrong});
      INFO(to_string(config) << " with " << wrong[i].first << "=" << wrong[i].second);
      CHECK(!code.ok);
      ++changed;
    }
    CHECK(changed > 0);
  }
}

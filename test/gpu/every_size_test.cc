// Small and odd sizes in every combination: the default config's result is right, whatever the
// alignments and ragged edges that follow from tight operands. Everything is allocated once.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "autotune/gpu/launch.h"
#include "autotune/gpu/tolerance.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

constexpr std::int64_t kExtents[] = {1,  2,  3,  7,  8,   15,  16,  17,   31,
                                     33, 63, 64, 65, 100, 127, 129, 1000, 1524};
constexpr std::int64_t kLargest = 1524;
constexpr std::int64_t kGuardBytes = 64 * 1024;  // on either side of the output
constexpr unsigned char kPoison = 0xff;          // NaN in every type
constexpr int kMostFailures = 20;                // more tell nothing new

std::vector<Problem> all_problems(DType dtype, Layout layout) {
  std::vector<Problem> problems;
  for (const std::int64_t m : kExtents) {
    for (const std::int64_t n : kExtents) {
      for (const std::int64_t k : kExtents) {
        problems.push_back(test::gemm(m, n, k, dtype, layout));
      }
    }
  }
  return problems;
}

gpu::DeviceMemory allocate(std::int64_t bytes) {
  auto memory = gpu::DeviceMemory::allocate(static_cast<std::size_t>(bytes));
  REQUIRE(memory);
  return std::move(*memory);
}

// Memory for the largest problem of a type, in which each problem's operands begin at the start. An
// element that a kernel should not read is as random as those that it should.
class Memory {
 public:
  Memory(gpu::Workbench& bench, DType dtype, std::int64_t workspace)
      : a_(allocate(kLargest * kLargest * storage_bytes(dtype))),
        b_(allocate(kLargest * kLargest * storage_bytes(dtype))),
        c_(allocate(kLargest * kLargest * storage_bytes(dtype) + 2 * kGuardBytes)),
        reference_(allocate(kLargest * kLargest * storage_bytes(dtype))),
        workspace_(allocate(workspace)) {
    constexpr std::int64_t kElements = kLargest * kLargest;
    REQUIRE(bench.fill_normal({a_.address(), dtype, 1, kElements, kElements, 1}, 1, 1));
    REQUIRE(bench.fill_normal({b_.address(), dtype, 1, kElements, kElements, 1}, 1, 2));
    REQUIRE(bench.fill_bytes(workspace_.address(), 0, workspace_.bytes()));
  }

  DevicePointers pointers() const {
    return {a_.address(), b_.address(), c_.address() + kGuardBytes, workspace_.address()};
  }

  // Of a K-major A.
  gpu::ReferenceGemm reference(const Problem& p) const {
    const bool b_k = b_is_k_major(p.layout);
    return {{a_.address(), p.dtype, p.m, p.k, p.lda, 1},
            {b_.address(), p.dtype, p.k, p.n, b_k ? 1 : p.ldb, b_k ? p.ldb : 1},
            output(p),
            {reference_.address(), p.out_dtype, p.m, p.n, p.n, 1}};
  }
  gpu::Matrix output(const Problem& p) const {
    return {c_.address() + kGuardBytes, p.out_dtype, p.m, p.n, p.ldc, 1};
  }

  Expected<void> poison(gpu::Workbench& bench, const Problem& p) const {
    return bench.fill_bytes(c_.address(), kPoison,
                            static_cast<std::size_t>(c_bytes(p) + 2 * kGuardBytes));
  }
  // Bytes before and behind the output that were written to.
  Expected<std::int64_t> touched(gpu::Workbench& bench, const Problem& p) const {
    const std::int64_t behind = kGuardBytes + c_bytes(p);
    const auto before = bench.count_touched(c_.address(), 1, 0, 0, kGuardBytes);
    const auto after = bench.count_touched(c_.address(), 1, 0, behind, behind + kGuardBytes);
    if (!before || !after) return before ? after : before;
    return *before + *after;
  }

 private:
  static std::int64_t c_bytes(const Problem& p) { return p.m * p.n * storage_bytes(p.out_dtype); }

  gpu::DeviceMemory a_;
  gpu::DeviceMemory b_;
  gpu::DeviceMemory c_;
  gpu::DeviceMemory reference_;
  gpu::DeviceMemory workspace_;
};

// Empty where the result is right, else what is wrong.
std::string wrong(const Problem& problem, const gpu::Comparison& found, std::int64_t touched) {
  const gpu::Bounds bounds = gpu::bounds_for(problem);
  if (found.bad > 0) return std::to_string(found.bad) + " elements are no number";
  if (touched > 0) return std::to_string(touched) + " bytes beside the output were overwritten";
  if (found.worst_ratio > 1) {
    return "an element's error is " + std::to_string(found.worst_ratio) + " times its bound";
  }
  // A single element may happen to be far smaller than what its sum is made of.
  const auto expected = static_cast<double>(problem.m * problem.n * problem.k);
  const double norm = std::max(found.reference_norm, std::sqrt(expected));
  if (found.error_norm > bounds.frobenius * norm) {
    return "the error is " + std::to_string(found.error_norm / norm) + " of the result";
  }
  return {};
}

Expected<std::string> run(gpu::Workbench& bench, const Memory& memory, const test::Case& each,
                          const gpu::LoadedKernel& kernel) {
  const Problem& problem = each.problem;
  const LaunchPlan plan = each.config.kernel->launch_plan(
      each.config, problem, kernel.placed(bench.gpu().spec), memory.pointers(), 0);
  const double absolute =
      gpu::bounds_for(problem).atol * std::sqrt(static_cast<double>(problem.k));  // rms of a sum
  auto done = memory.poison(bench, problem);
  if (done) done = kernel.launch(plan, bench.stream());
  if (done) done = bench.reference(memory.reference(problem));
  if (!done) return tl::unexpected(done.error());
  const auto found = bench.compare(memory.output(problem), memory.reference(problem).out.address,
                                   absolute, gpu::bounds_for(problem).rtol);
  if (!found) return tl::unexpected(found.error());
  const auto touched = memory.touched(bench, problem);
  if (!touched) return tl::unexpected(touched.error());
  return wrong(problem, *found, *touched);
}

// Loaded when first needed, and ready to be launched.
class Kernels {
 public:
  explicit Kernels(std::map<std::string, gpu::CompiledCode> codes) : codes_(std::move(codes)) {}

  std::size_t count() const { return codes_.size(); }
  const gpu::LoadedKernel& of(const test::Case& each, const DeviceSpec& device) {
    const auto known = loaded_.find(each.hash);
    if (known != loaded_.end()) return known->second;
    const gpu::CompiledCode& code = codes_.at(each.hash);
    INFO(code.log);
    REQUIRE(code.ok);
    auto kernel = gpu::LoadedKernel::load(code.cubin, each.config.kernel->entry());
    REQUIRE(kernel);
    const auto verdict =
        kernel->prepare(each.config.kernel->launch_plan(each.config, each.problem, device, {}, 0));
    REQUIRE(verdict);
    REQUIRE_FALSE(*verdict);
    return loaded_.emplace(each.hash, std::move(*kernel)).first->second;
  }

 private:
  std::map<std::string, gpu::CompiledCode> codes_;
  std::map<std::string, gpu::LoadedKernel> loaded_;
};

std::int64_t workspace_for(const std::vector<test::Case>& cases, const DeviceSpec& device) {
  std::int64_t most = 0;
  for (const test::Case& each : cases) {
    const Resources needed = each.config.kernel->resources(each.config, each.problem, device, 0);
    most = std::max(most, needed.workspace_bytes);
  }
  return most;
}

class Stopwatch {
 public:
  double seconds() {
    const auto begin = begin_;
    begin_ = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(begin_ - begin).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_CASE("default configs are right for every small and odd size", "[every_size]") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const DeviceSpec& device = bench->gpu().spec;
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    for (const Layout layout : {Layout::tn, Layout::tt}) {
      Stopwatch watch;
      const std::vector<test::Case> cases =
          test::default_cases(all_problems(dtype, layout), device);
      const double choosing = watch.seconds();
      Kernels kernels(test::compile_all(cases, device));
      const double compiling = watch.seconds();
      const Memory memory(*bench, dtype, workspace_for(cases, device));
      int failures = 0;
      for (const test::Case& each : cases) {
        INFO(describe(each.problem) << " with " << to_string(each.config));
        const auto result = run(*bench, memory, each, kernels.of(each, device));
        if (!result) FAIL(result.error().message);
        if (result->empty()) continue;
        FAIL_CHECK(*result);
        REQUIRE(++failures < kMostFailures);
      }
      CHECK(failures == 0);
      std::cout << to_string(dtype) << ' ' << to_string(layout) << ": " << cases.size()
                << " problems, " << kernels.count() << " kernels: chosen in " << choosing
                << " s, compiled in " << compiling << " s, run in " << watch.seconds() << " s"
                << std::endl;
    }
  }
}

// 24 problems per dtype and layout, odd extents among them, are right with the default config.
#include <vector>

#include "test/gpu/default_cases.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

constexpr std::int64_t kExtents[] = {1, 7, 33, 100, 1000, 1524, 4097};
constexpr int kPerCombination = 24;

// The i-th of 49 triples (x, y, x + y mod 7): in the whole list every pair of extents occurs once
// in every two of m, n and k. 24 per layout are 96 per dtype: each dtype sees all pairs.
Problem problem_of(int i, DType dtype, Layout layout) {
  const int x = i % 49 / 7;
  const int y = i % 7;
  return test::gemm(kExtents[x], kExtents[y], kExtents[(x + y) % 7], dtype, layout);
}

}  // namespace

TEST_CASE("default configs are right on 24 problems per dtype and layout") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  std::vector<Problem> problems;
  for (const DType dtype : test::kAllDTypes) {
    int i = 0;
    for (const Layout layout : test::kAllLayouts) {
      for (int count = 0; count < kPerCombination; ++count, ++i) {
        problems.push_back(problem_of(i, dtype, layout));
      }
    }
  }
  const std::vector<test::Case> cases = test::default_cases(problems, device);
  const auto codes = test::compile_all(cases, device);
  for (const test::Case& each : cases) {
    const gpu::CompiledCode& code = codes.at(each.hash);
    worker::MeasureRequest request;
    request.problem = each.problem;
    request.config = to_string(each.config);
    request.cubin = code.cubin;
    request.options.max_samples = 1;
    INFO(describe(each.problem) << " with " << request.config);
    if (!code.ok) {
      FAIL_CHECK(code.log);
      continue;
    }
    const auto reply = measurer->measure(request);
    INFO(reply.log);
    CHECK(reply.outcome == Outcome::ok);
    // Everything behind a poisoned context would fail as well.
    REQUIRE(!measurer->lost());
  }
}

TEST_CASE("operands whose lines are longer than 2^31 bytes are read to their end") {
  gpu::Measurer* measurer = test::measurer();
  if (measurer == nullptr) return;
  const DeviceSpec& device = measurer->gpu().spec;
  if (device.dram_bytes < std::int64_t{16} << 30) return;  // the operands take 10 GiB
  // A is column-major: its only line holds all of m.
  for (const Problem& problem : {test::gemm((1 << 30) + 33, 1, 1, DType::bf16, Layout::nn),
                                 test::gemm((1 << 29) + 33, 1, 1, DType::tf32, Layout::nn),
                                 test::gemm((1 << 29) + 33, 1, 1, DType::fp32, Layout::nn)}) {
    worker::MeasureRequest request = test::default_request(problem, device);
    request.options.max_samples = 1;
    INFO(describe(problem) << " with " << request.config);
    const auto reply = measurer->measure(request);
    INFO(reply.log);
    CHECK(reply.outcome == Outcome::ok);
    REQUIRE(!measurer->lost());
  }
}

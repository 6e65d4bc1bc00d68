// A GEMM on matrices that a test gives, element by element.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "autotune/gpu/launch.h"
#include "test/gpu/default_config.h"
#include "test/gpu/elements.h"
#include "test/gpu/gpu_here.h"
#include "test/support/given_matrices.h"

namespace autotune::test {

// rows x columns values as a matrix in device memory, NaN between its lines. Of bf16, the upper
// halves of fp32: values must be exact in it.
inline gpu::DeviceMemory put(gpu::Workbench& bench, const std::vector<float>& values, DType storage,
                             std::int64_t rows, std::int64_t columns, std::int64_t leading,
                             bool along_columns) {
  const auto element = static_cast<std::size_t>(storage_bytes(storage));
  REQUIRE(storage != DType::fp16);
  const std::int64_t lines = along_columns ? rows : columns;
  std::vector<std::byte> stored(static_cast<std::size_t>(lines * leading) * element,
                                std::byte{0xff});
  for (std::int64_t row = 0; row < rows && !values.empty(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = along_columns ? row * leading + column : column * leading + row;
      const float value = values[static_cast<std::size_t>(row * columns + column)];
      const auto bits = std::bit_cast<std::array<std::byte, sizeof(float)>>(value);
      std::memcpy(stored.data() + static_cast<std::size_t>(at) * element,
                  bits.data() + sizeof(float) - element, element);
    }
  }
  auto memory = gpu::DeviceMemory::allocate(stored.size());
  REQUIRE(memory);
  REQUIRE(bench.upload(memory->address(), stored.data(), stored.size()));
  return std::move(*memory);
}

// m x n results of a config, row by row; what it did not write stays NaN. `max_sms` > 0 caps the
// grid.
inline std::vector<float> run_given(gpu::Workbench& bench, const Config& config,
                                    const Problem& problem, const GivenMatrices& given,
                                    int max_sms = 0) {
  const DeviceSpec& device = bench.gpu().spec;
  INFO(describe(problem) << " with " << to_string(config));
  REQUIRE(config.kernel->unsupported(traits_of(problem), device).empty());
  const gpu::CompiledCode code = compile(config, problem, device);
  INFO(code.log);
  REQUIRE(code.ok);
  const auto kernel = gpu::LoadedKernel::load(code.cubin, config.kernel->entry());
  REQUIRE(kernel);
  const Problem& p = problem;
  const auto a = put(bench, given.a, p.dtype, p.m, p.k, p.lda, a_is_k_major(p.layout));
  const auto b = put(bench, given.b, p.dtype, p.k, p.n, p.ldb, !b_is_k_major(p.layout));
  const auto c = put(bench, given.c, p.out_dtype, p.m, p.n, p.ldc, true);
  const auto up = put(bench, given.up, p.dtype, p.k, p.n, p.ldb, !b_is_k_major(p.layout));
  const std::int64_t bytes =
      config.kernel->resources(config, problem, device, max_sms).workspace_bytes;
  const auto workspace =
      gpu::DeviceMemory::allocate(static_cast<std::size_t>(std::max(bytes, kWorkspaceMarkBytes)));
  REQUIRE(workspace);
  REQUIRE(bench.fill_bytes(workspace->address(), 0, kWorkspaceMarkBytes));
  const LaunchPlan plan = config.kernel->launch_plan(
      config, problem, device,
      {a.address(), b.address(), c.address(), workspace->address(), up.address()}, max_sms);
  const auto refused = kernel->prepare(plan);
  REQUIRE(refused);
  REQUIRE_FALSE(*refused);
  REQUIRE(kernel->launch(plan, bench.stream()));
  const std::vector<double> stored =
      fetch(bench, {c.address(), p.out_dtype, p.m, p.ldc, p.ldc, 1}, c.bytes());
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t row = 0; row < p.m; ++row) {
    const auto begin = stored.begin() + row * p.ldc;
    CHECK(std::all_of(begin + p.n, begin + p.ldc, [](double gap) { return std::isnan(gap); }));
    for (auto at = begin; at != begin + p.n; ++at) values.push_back(static_cast<float>(*at));
  }
  return values;
}

}  // namespace autotune::test

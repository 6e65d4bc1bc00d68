// A GEMM on matrices that a test gives, element by element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "autotune/gpu/launch.h"
#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"
#include "test/support/given_matrices.h"

namespace autotune::test {

// rows x columns values as a matrix in device memory, NaN between its lines.
inline gpu::DeviceMemory put(gpu::Workbench& bench, const std::vector<float>& values,
                             std::int64_t rows, std::int64_t columns, std::int64_t leading,
                             bool along_columns) {
  const std::int64_t lines = along_columns ? rows : columns;
  std::vector<float> stored(static_cast<std::size_t>(lines * leading), NAN);
  for (std::int64_t row = 0; row < rows && !values.empty(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = along_columns ? row * leading + column : column * leading + row;
      stored[static_cast<std::size_t>(at)] =
          values[static_cast<std::size_t>(row * columns + column)];
    }
  }
  auto memory = gpu::DeviceMemory::allocate(stored.size() * sizeof(float));
  REQUIRE(memory);
  REQUIRE(bench.upload(memory->address(), stored.data(), stored.size() * sizeof(float)));
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
  const auto a = put(bench, given.a, p.m, p.k, p.lda, a_is_k_major(p.layout));
  const auto b = put(bench, given.b, p.k, p.n, p.ldb, !b_is_k_major(p.layout));
  const auto c = put(bench, given.c, p.m, p.n, p.ldc, true);
  const auto up = put(bench, given.up, p.k, p.n, p.ldb, !b_is_k_major(p.layout));
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
  std::vector<float> stored(static_cast<std::size_t>(p.m * p.ldc));
  REQUIRE(bench.download(stored.data(), c.address(), stored.size() * sizeof(float)));
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t row = 0; row < p.m; ++row) {
    const auto begin = stored.begin() + row * p.ldc;
    CHECK(std::all_of(begin + p.n, begin + p.ldc, [](float gap) { return std::isnan(gap); }));
    values.insert(values.end(), begin, begin + p.n);
  }
  return values;
}

}  // namespace autotune::test

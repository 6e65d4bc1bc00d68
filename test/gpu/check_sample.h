// Configs of a problem, given or sampled, each compiled, run and compared with the reference.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "search/plan.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/gpu_here.h"

namespace autotune::test {

inline void check_config(gpu::Measurer& measurer, const Problem& problem, const Config& config) {
  INFO(describe(problem) << " with " << to_string(config));
  const gpu::CompiledCode code = compile(config, problem, measurer.gpu().spec);
  INFO(code.log);
  REQUIRE(code.ok);
  worker::MeasureRequest request;
  request.problem = problem;
  request.config = to_string(config);
  request.cubin = code.cubin;
  request.actual = code.actual;
  request.options.max_samples = 1;
  const auto reply = measurer.measure(request);
  INFO(reply.log);
  CHECK(reply.outcome == Outcome::ok);
  // Everything behind a poisoned context would fail as well.
  REQUIRE(!measurer.lost());
}

inline void check_sample(gpu::Measurer& measurer, const Problem& problem, int count,
                         std::uint64_t seed) {
  const DeviceSpec& device = measurer.gpu().spec;
  const auto plan = search::make_plan(problem, device, *io::default_space(problem.family), {});
  if (!plan) FAIL(plan.error().message);
  const auto sample = search::sample_survivors(*plan, count, seed);
  std::vector<std::pair<Config, Problem>> wanted;
  for (const search::Candidate& each : sample) wanted.emplace_back(each.config, problem);
  compile_ahead(wanted, device);
  for (const search::Candidate& each : sample) check_config(measurer, problem, each.config);
}

}  // namespace autotune::test

// The default config of a problem, compiled for the GPU at hand.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "autotune/gpu/nvrtc.h"
#include "autotune/io/builtin.h"
#include "autotune/worker/messages.h"
#include "kernels/problem.h"
#include "search/plan.h"
#include "test/support/catch.h"
#include "test/support/problems.h"

namespace autotune::test {

inline search::Candidate default_config(const Problem& problem, const DeviceSpec& device) {
  auto candidate =
      search::default_candidate(problem, device, *io::default_space(problem.family), {});
  if (!candidate) FAIL(candidate.error().message);
  return *candidate;
}

// Each code once per process, whoever asks, as a session would compile it; from any thread.
inline gpu::CompiledCode compile(const Config& config, const Problem& problem,
                                 const DeviceSpec& device) {
  static std::mutex mutex;
  static std::map<std::string, gpu::CompiledCode> known;
  const std::string hash = source_hash(config, traits_of(problem), device);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(hash); found != known.end()) return found->second;
  }
  const auto definitions = config.kernel->definitions(config, traits_of(problem), device);
  gpu::CompiledCode code =
      (*gpu::nvrtc())
          ->compile_unchecked({config.kernel->source().text, config.kernel->entry(),
                               device.limits.arch, definitions});
  const std::lock_guard lock(mutex);
  return known.emplace(hash, std::move(code)).first->second;
}

// A request to measure the default config, compiled.
inline worker::MeasureRequest default_request(const Problem& problem, const DeviceSpec& device) {
  const search::Candidate candidate = default_config(problem, device);
  gpu::CompiledCode code = compile(candidate.config, problem, device);
  INFO(code.log);
  REQUIRE(code.ok);
  worker::MeasureRequest request;
  request.id = 1;
  request.problem = problem;
  request.config = to_string(candidate.config);
  request.cubin = std::move(code.cubin);
  return request;
}

}  // namespace autotune::test

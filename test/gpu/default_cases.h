// Many problems with their default configs, found and compiled on all cores.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/gpu/default_config.h"
#include "test/support/on_all_cores.h"

namespace autotune::test {

struct Case {
  Problem problem;
  Config config;
  std::string hash;  // of its code; empty where the problem has no config
  std::string error;
};

// Compiles on all cores what compile() is about to be asked for one after the other.
inline void compile_ahead(const std::vector<std::pair<Config, Problem>>& wanted,
                          const DeviceSpec& device) {
  on_all_cores(wanted.size(),
               [&](std::size_t i) { compile(wanted[i].first, wanted[i].second, device); });
}

inline std::vector<Case> default_cases(const std::vector<Problem>& problems,
                                       const DeviceSpec& device) {
  std::vector<Case> cases(problems.size());
  on_all_cores(problems.size(), [&](std::size_t i) {
    const Problem& problem = problems[i];
    cases[i].problem = problem;
    const auto candidate =
        search::default_candidate(problem, device, *io::default_space(problem.family), {});
    if (!candidate) {
      cases[i].error = candidate.error().message;
      return;
    }
    cases[i].config = candidate->config;
    cases[i].hash = source_hash(candidate->config, traits_of(problem), device);
  });
  for (const Case& each : cases) {
    if (!each.error.empty()) FAIL(each.error);
  }
  return cases;
}

// The code of all cases by its hash, each compiled once.
inline std::map<std::string, gpu::CompiledCode> compile_all(const std::vector<Case>& cases,
                                                            const DeviceSpec& device) {
  std::map<std::string, gpu::CompiledCode> codes;
  std::vector<const Case*> sources;
  for (const Case& each : cases) {
    if (codes.try_emplace(each.hash).second) sources.push_back(&each);
  }
  on_all_cores(sources.size(), [&](std::size_t i) {
    const Case& each = *sources[i];
    codes.at(each.hash) = compile(each.config, each.problem, device);
  });
  return codes;
}

}  // namespace autotune::test

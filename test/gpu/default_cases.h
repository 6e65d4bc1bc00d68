// Many problems with their default configs, found and compiled on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/gpu/default_config.h"

namespace autotune::test {

struct Case {
  Problem problem;
  Config config;
  std::string hash;  // of its code; empty where the problem has no config
  std::string error;
};

// `work` of 0 to count - 1, on all cores; it must not use Catch.
inline void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next++; job < count; job = next++) work(job);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

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

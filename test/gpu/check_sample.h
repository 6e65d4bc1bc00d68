// Configs of a problem, given or sampled, each compiled, run and compared with the reference.
#pragma once

#include <utility>
#include <vector>

#include "search/plan.h"
#include "test/gpu/default_cases.h"
#include "test/gpu/gpu_here.h"

namespace autotune::test {

inline void check_config(gpu::Measurer& measurer, const Problem& problem, const Config& config,
                         int max_sms = 0) {
  INFO(describe(problem) << " with " << to_string(config));
  const gpu::CompiledCode code = compile(config, problem, measurer.gpu().spec);
  INFO(code.log);
  REQUIRE(code.ok);
  worker::MeasureRequest request;
  request.problem = problem;
  request.config = to_string(config);
  request.cubin = code.cubin;
  request.options.max_sms = max_sms;
  request.options.max_samples = 1;
  const auto reply = measurer.measure(request);
  INFO(reply.log);
  CHECK(reply.outcome == Outcome::ok);
  // Everything behind a poisoned context would fail as well.
  REQUIRE(!measurer.lost());
}

// Configs to be checked, of whatever problems: compiled on all cores, then run one after the other.
class Batch {
 public:
  explicit Batch(gpu::Measurer& measurer) : measurer_(measurer) {}

  void add(const Problem& problem, const Config& config) { wanted_.emplace_back(config, problem); }

  // Some of those that plans would try.
  void sample(const Problem& problem, int count, std::uint64_t seed) {
    const auto plan =
        search::make_plan(problem, measurer_.gpu().spec, *io::default_space(problem.family), {});
    if (!plan) FAIL(plan.error().message);
    for (const search::Candidate& each : search::sample_survivors(*plan, count, seed)) {
      add(problem, each.config);
    }
  }

  void check() const {
    compile_ahead(wanted_, measurer_.gpu().spec);
    for (const auto& [config, problem] : wanted_) check_config(measurer_, problem, config);
  }

 private:
  gpu::Measurer& measurer_;
  std::vector<std::pair<Config, Problem>> wanted_;
};

}  // namespace autotune::test

// From a problem to ranked survivors: generate, prune, rank.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/check.h"
#include "search/model.h"
#include "search/space.h"

namespace autotune::search {

struct Candidate {
  Config config;
  Resources resources;
  double predicted_us = 0;
};

// The order of a plan: predicted time, then fewer resources, then the parameters' values.
bool ranks_before(const Candidate& a, const Candidate& b);

// Whether two configs run the same code on the same tiles in the same order.
bool same_launch(const Config& a, const Config& b, const Problem& problem);

// Rejections are counted by rule: "structure:<constraint>", a Rule's name, or "same_launch" for
// what differs from a better-placed survivor in nothing that reaches the GPU.
struct Plan {
  Problem problem;                               // checked
  std::int64_t generated = 0;                    // = survivors + sum of rejected
  std::map<std::string, std::int64_t> rejected;  // rule -> count; see above
  std::vector<Candidate> survivors;      // fastest first as predicted; ties by fewer resources
  std::vector<std::string> unsupported;  // "simt: fp32 only", kernels that generated nothing

  // What the performance model would take without any measuring.
  const Candidate& default_config() const { return survivors.front(); }
};

// nothing_fits when no config survives: the message names the rule that rejected most and the
// closest miss, and `counted`, where given, gets all that a plan has but survivors.
Expected<Plan> make_plan(const Problem& problem, const DeviceSpec& device, const Space& space,
                         const Limits& limits, Plan* counted = nullptr);

// The default config alone; what best_config() answers without an entry. Same errors.
Expected<Candidate> default_candidate(const Problem& problem, const DeviceSpec& device,
                                      const Space& space, const Limits& limits);

// The survivor nearest to `config`: fewest changed parameters, then least log2 distance, then
// predicted time. nullopt where nothing fits.
std::optional<Candidate> nearest_that_fits(const Config& config, const Plan& plan);

// Up to `count` random configs of the space that a hard rule rejected (their structure is sound and
// no user cap or exclude names them), for the audit. Deterministic for a seed.
struct Reject {
  Config config;
  Verdict verdict;
};
std::vector<Reject> sample_rejects(const Problem& problem, const DeviceSpec& device,
                                   const Space& space, const Limits& limits, int count,
                                   std::uint64_t seed);

// `count` survivors drawn with a seed, without repetition of the same code (run-time parameters do
// not make another cubin); all of them when count < 0.
std::vector<Candidate> sample_survivors(const Plan& plan, int count, std::uint64_t seed);

}  // namespace autotune::search

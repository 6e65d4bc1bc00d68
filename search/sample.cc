#include <unordered_set>

#include "search/draw.h"
#include "search/request.h"

namespace autotune::search {
std::vector<Candidate> sample_survivors(const Plan& plan, int count, std::uint64_t seed) {
  std::vector<std::size_t> order(plan.survivors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (count >= 0) {
    Random random(seed);
    shuffle(order, random);
  }
  std::vector<Candidate> sample;
  std::unordered_set<Config, ConfigHash> taken;
  for (const std::size_t i : order) {
    if (count >= 0 && sample.size() >= static_cast<std::size_t>(count)) break;
    if (taken.insert(code_of(plan.survivors[i].config)).second) {
      sample.push_back(plan.survivors[i]);
    }
  }
  return sample;
}

std::vector<Reject> sample_rejects(const Problem& problem, const DeviceSpec& device,
                                   const Space& space, const Limits& limits, int count,
                                   std::uint64_t seed) {
  const auto request = make_request(problem, device, space, limits);
  if (!request) return {};
  std::vector<Reject> rejects;
  for_each_checked(*request, [&](const CheckedCode& code) {
    if (!code.verdict || !is_hard(code.verdict->rule)) return;
    for (const std::size_t order : code.allowed) {
      rejects.push_back({code.orders->at(code.config, order), *code.verdict});
    }
  });
  Random random(seed);
  shuffle(rejects, random);
  std::vector<Reject> sample;
  std::unordered_set<Config, ConfigHash> taken;
  for (const Reject& reject : rejects) {
    if (sample.size() >= static_cast<std::size_t>(std::max(0, count))) break;
    if (taken.insert(code_of(reject.config)).second) sample.push_back(reject);
  }
  return sample;
}

}  // namespace autotune::search

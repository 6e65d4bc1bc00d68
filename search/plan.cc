#include "search/plan.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <unordered_set>

#include "search/funnel.h"
#include "search/request.h"

namespace autotune::search {
namespace {

Candidate candidate_of(const Request& request, const Config& config, const Resources& resources) {
  return {config, resources,
          predict_us(config, request.problem, *request.device, resources, request.limits->max_sms)};
}

// Of survivors that launch the very same work, keeps the first.
std::int64_t drop_same_launches(const Problem& problem, std::vector<Candidate>& ranked) {
  std::unordered_set<Config, ConfigHash> seen;
  seen.reserve(ranked.size());
  const auto kept = std::remove_if(ranked.begin(), ranked.end(), [&](const Candidate& candidate) {
    return !seen.insert(candidate.config.kernel->canonical(candidate.config, problem)).second;
  });
  const auto dropped = std::distance(kept, ranked.end());
  ranked.erase(kept, ranked.end());
  return dropped;
}

}  // namespace

bool ranks_before(const Candidate& a, const Candidate& b) {
  const auto order = [](const Candidate& c) {
    const Resources& r = c.resources;
    return std::tuple(c.predicted_us, r.smem_bytes, r.threads * r.registers, r.threads,
                      r.workspace_bytes, c.config.kernel->name());
  };
  const auto order_a = order(a);
  const auto order_b = order(b);
  return order_a != order_b ? order_a < order_b : a.config.values < b.config.values;
}

Expected<Plan> make_plan(const Request& request) {
  Plan plan;
  plan.problem = request.problem;
  Funnel funnel;
  plan.unsupported = for_each_checked(request, [&](const Config& config, const Resources& resources,
                                                   const std::optional<Verdict>& verdict) {
    funnel.generate();
    if (verdict) {
      funnel.reject(config, *verdict);
    } else {
      plan.survivors.push_back(candidate_of(request, config, resources));
    }
  });
  if (plan.survivors.empty()) {
    return tl::unexpected(funnel.nothing_fits(request, plan.unsupported));
  }
  plan.generated = funnel.generated();
  plan.rejected = funnel.rejected();
  std::sort(plan.survivors.begin(), plan.survivors.end(), ranks_before);
  const std::int64_t same = drop_same_launches(plan.problem, plan.survivors);
  if (same > 0) plan.rejected["same_launch"] = same;
  return plan;
}

Expected<Candidate> default_candidate(const Request& request) {
  std::optional<Candidate> best;
  Funnel funnel;
  const auto unsupported = for_each_checked(
      request,
      [&](const Config& config, const Resources& resources, const std::optional<Verdict>& verdict) {
        funnel.generate();
        if (verdict) {
          funnel.reject(config, *verdict);
          return;
        }
        const Candidate candidate = candidate_of(request, config, resources);
        if (!best || ranks_before(candidate, *best)) best = candidate;
      });
  if (!best) return tl::unexpected(funnel.nothing_fits(request, unsupported));
  return *best;
}

Expected<Plan> make_plan(const Problem& problem, const DeviceSpec& device, const Space& space,
                         const Limits& limits) {
  const auto request = make_request(problem, device, space, limits);
  if (!request) return tl::unexpected(request.error());
  return make_plan(*request);
}

Expected<Candidate> default_candidate(const Problem& problem, const DeviceSpec& device,
                                      const Space& space, const Limits& limits) {
  const auto request = make_request(problem, device, space, limits);
  if (!request) return tl::unexpected(request.error());
  return default_candidate(*request);
}

}  // namespace autotune::search

#include <cmath>
#include <tuple>

#include "search/plan.h"

namespace autotune::search {
namespace {

// 0 counts as a half, so that a flag's two values are one doubling apart.
double log2_of(std::int32_t value) { return std::log2(value > 0 ? value : 0.5); }

struct Distance {
  int changed = 0;
  double log2 = 0;
};

Distance distance(const Config& from, const Config& to) {
  Distance d;
  const std::span<const Parameter> parameters = to.kernel->parameters();
  const bool same_kernel = from.kernel == to.kernel;
  // Another kernel is further away than any change of the parameters.
  if (!same_kernel) d.changed = kMaxParameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::int32_t old_value =
        same_kernel ? from.values[p] : value_of(from, parameters[p].name);
    if (old_value == to.values[p]) continue;
    ++d.changed;
    if (old_value >= 0) d.log2 += std::abs(log2_of(old_value) - log2_of(to.values[p]));
  }
  return d;
}

}  // namespace

std::optional<Candidate> nearest_that_fits(const Config& config, const Plan& plan) {
  const Candidate* nearest = nullptr;
  Distance least;
  // Survivors come fastest first, so a strict comparison settles ties by predicted time.
  for (const Candidate& candidate : plan.survivors) {
    const Distance d = distance(config, candidate.config);
    if (nearest == nullptr || std::tie(d.changed, d.log2) < std::tie(least.changed, least.log2)) {
      nearest = &candidate;
      least = d;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  return *nearest;
}

}  // namespace autotune::search

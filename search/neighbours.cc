#include "search/neighbours.h"

#include <algorithm>

namespace autotune::search {

Neighbours::Neighbours(const Plan& plan) : plan_(plan) {
  index_.reserve(plan.survivors.size());
  for (std::size_t i = 0; i < plan.survivors.size(); ++i) {
    const Config& config = plan.survivors[i].config;
    index_.emplace(config, i);
    Values& values = values_[config.kernel];
    for (std::size_t p = 0; p < values.size(); ++p) {
      const auto at = std::lower_bound(values[p].begin(), values[p].end(), config.values[p]);
      if (at == values[p].end() || *at != config.values[p]) values[p].insert(at, config.values[p]);
    }
  }
}

std::vector<std::size_t> Neighbours::of(std::size_t candidate) const {
  const Config& center = plan_.survivors[candidate].config;
  const Values& values = values_.at(center.kernel);
  std::vector<std::size_t> found;
  const auto add = [&](std::size_t parameter, std::int32_t value) {
    Config config = center;
    config.values[parameter] = value;
    const auto at = index_.find(config);
    if (at != index_.end()) found.push_back(at->second);
  };
  for (std::size_t p = 0; p < values.size(); ++p) {
    const auto at = std::lower_bound(values[p].begin(), values[p].end(), center.values[p]);
    if (at != values[p].begin()) add(p, *(at - 1));
    if (at + 1 != values[p].end()) add(p, *(at + 1));
  }
  return found;
}

}  // namespace autotune::search

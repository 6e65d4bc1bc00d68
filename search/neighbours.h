// Which survivors differ from one by a single step of a single parameter.
#pragma once

#include <unordered_map>
#include <vector>

#include "search/plan.h"

namespace autotune::search {

class Neighbours {
 public:
  explicit Neighbours(const Plan& plan);

  // Indices into the plan's survivors. A step leads to the next value, up or down, that any
  // survivor of the kernel has for that parameter.
  std::vector<std::size_t> of(std::size_t candidate) const;

 private:
  using Values = std::array<std::vector<std::int32_t>, kMaxParameters>;  // sorted

  const Plan& plan_;
  std::unordered_map<Config, std::size_t, ConfigHash> index_;
  std::unordered_map<const HostTwin*, Values> values_;
};

}  // namespace autotune::search

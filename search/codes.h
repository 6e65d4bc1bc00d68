// A kernel's space by its codes: configs that differ in run-time parameters alone share one code,
// and stand and fall together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "search/space.h"

namespace autotune::search {

// The values that a kernel's space gives to the run-time parameters of each code.
class TileOrders {
 public:
  TileOrders(const HostTwin& kernel, const KernelSpace& space);

  std::size_t count() const { return configs_.size(); }
  // The code in the i-th order; ascending in the parameters' values.
  Config at(const Config& code, std::size_t i) const;
  // Whether two configs of this kernel have the same run-time parameters.
  bool same(const Config& a, const Config& b) const;

 private:
  std::size_t begin_;  // the first run-time parameter
  std::size_t end_;
  std::vector<Config> configs_;
};

struct CodeVisitor {
  // This constraint is the first that so many codes break.
  std::function<void(std::int16_t constraint, std::int64_t codes)> broken;
  // Each other code, in the order of the space; its run-time parameters are 0.
  std::function<void(const Config& code)> sound;
};

// Codes that share a broken constraint's parameters are counted without being looked at one by one.
void for_each_code(const HostTwin& kernel, const KernelSpace& space, const KernelTraits& traits,
                   const CodeVisitor& visitor);

}  // namespace autotune::search

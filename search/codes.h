// A kernel's space by its codes: configs that differ in run-time parameters alone share one code,
// and stand and fall together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "search/space.h"

namespace autotune::search {

// The values that a kernel's space gives to the run-time parameters of each code.
class TileOrders {
 public:
  TileOrders(const HostTwin& kernel, const KernelSpace& space);

  std::size_t count() const { return configs_.size(); }
  // The i-th order; ascending in the parameters' values.
  TileOrder operator[](std::size_t i) const { return orders_[i]; }
  // The code in that order.
  Config at(const Config& code, std::size_t i) const;
  void put(std::size_t i, Config& code) const;

 private:
  std::size_t begin_;  // the first run-time parameter
  std::size_t end_;
  std::vector<Config> configs_;
  std::vector<TileOrder> orders_;
};

// Visits the codes that break no structural constraint, in the order of the space, made in place
// and with the run-time parameters of `first`, a config of the space's kernel. Returns how many
// others there are, by the first constraint that they break; those that share its parameters are
// counted without being looked at one by one. What has more than `most_ring_bytes` by
// HostTwin::ring_bytes() is passed over, and not counted.
std::vector<std::int64_t> for_each_sound_code(
    const KernelSpace& space, const Config& first, const KernelTraits& traits,
    const std::function<void(const Config& code)>& visit,
    std::int64_t most_ring_bytes = std::numeric_limits<std::int64_t>::max());

}  // namespace autotune::search

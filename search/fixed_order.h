// A strategy whose order is settled before anything is measured.
#pragma once

#include <algorithm>

#include "search/strategy.h"

namespace autotune::search {

class FixedOrder : public Strategy {
 public:
  explicit FixedOrder(std::vector<std::size_t> order) : order_(std::move(order)) {}

  std::vector<std::size_t> next(std::span<const Observation>, std::size_t limit) final {
    const std::size_t end = position_ + std::min(limit, order_.size() - position_);
    std::vector<std::size_t> batch;
    for (; position_ < end; ++position_) batch.push_back(order_[position_]);
    return batch;
  }

 private:
  std::vector<std::size_t> order_;
  std::size_t position_ = 0;
};

}  // namespace autotune::search

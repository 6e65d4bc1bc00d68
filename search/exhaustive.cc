// Every survivor, fastest first as predicted.
#include <numeric>

#include "search/fixed_order.h"
#include "search/strategies.h"

namespace autotune::search {
namespace {

class Exhaustive final : public FixedOrder {
 public:
  using FixedOrder::FixedOrder;
  std::string_view name() const override { return "exhaustive"; }
};

}  // namespace

std::unique_ptr<Strategy> make_exhaustive(const Plan& plan) {
  std::vector<std::size_t> order(plan.survivors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return std::make_unique<Exhaustive>(std::move(order));
}

}  // namespace autotune::search

// Every survivor in a seeded random order, the default config first.
#include <algorithm>
#include <numeric>

#include "search/draw.h"
#include "search/fixed_order.h"
#include "search/strategies.h"

namespace autotune::search {
namespace {

class RandomOrder final : public FixedOrder {
 public:
  using FixedOrder::FixedOrder;
  std::string_view name() const override { return "random"; }
};

}  // namespace

std::unique_ptr<Strategy> make_random(const Plan& plan, std::uint64_t seed) {
  std::vector<std::size_t> order(plan.survivors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  shuffle(order, random);
  std::iter_swap(order.begin(), std::find(order.begin(), order.end(), std::size_t{0}));
  return std::make_unique<RandomOrder>(std::move(order));
}

}  // namespace autotune::search

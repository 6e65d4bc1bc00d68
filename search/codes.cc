#include "search/codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace autotune::search {
namespace {

std::size_t compile_time_parameters(const HostTwin& kernel) {
  const std::span<const Parameter> parameters = kernel.parameters();
  std::size_t count = parameters.size();
  while (count > 0 && parameters[count - 1].run_time) --count;
  return count;
}

// Sets one parameter after the other and looks at each constraint, in their order, as soon as all
// that it and those before it read is set.
class Walk {
 public:
  Walk(const KernelSpace& space, const Config& first, const KernelTraits& traits,
       const std::function<void(const Config&)>& visit, std::int64_t most_ring_bytes)
      : constraints_(first.kernel->constraints()),
        ranges_(std::span(space.parameters).first(compile_time_parameters(*first.kernel))),
        traits_(traits),
        visit_(visit),
        most_ring_bytes_(most_ring_bytes),
        config_(first),
        broken_(constraints_.size()) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      const auto read = static_cast<std::size_t>(std::bit_width(constraints_[i].reads));
      for (const std::size_t settled = std::min(read, ranges_.size()); depth < settled; ++depth) {
        ends_[depth] = i;
      }
    }
    for (; depth <= ranges_.size(); ++depth) ends_[depth] = constraints_.size();
    for (std::size_t d = 0; d <= ranges_.size(); ++d) below_[d] = size_of(ranges_.subspan(d));
  }

  std::vector<std::int64_t> broken() && { return std::move(broken_); }

  // With the first `depth` parameters set.
  void descend(std::size_t depth) {
    for (std::size_t i = depth == 0 ? 0 : ends_[depth - 1]; i < ends_[depth]; ++i) {
      if (constraints_[i].holds(config_.values, traits_)) continue;
      broken_[i] += below_[depth];
      return;
    }
    if (depth == HostTwin::kRingParameters &&
        config_.kernel->ring_bytes(config_, traits_) > most_ring_bytes_) {
      return;
    }
    if (depth == ranges_.size()) {
      visit_(config_);
      return;
    }
    for (const std::int32_t value : ranges_[depth].values) {
      config_.values[depth] = value;
      descend(depth + 1);
    }
  }

 private:
  std::span<const Constraint> constraints_;
  std::span<const ParameterRange> ranges_;
  const KernelTraits& traits_;
  const std::function<void(const Config&)>& visit_;
  std::int64_t most_ring_bytes_;
  Config config_;
  std::vector<std::int64_t> broken_;
  // By the number of parameters that are set: behind the constraints to look at, codes to come.
  std::array<std::size_t, kMaxParameters + 1> ends_{};
  std::array<std::int64_t, kMaxParameters + 1> below_{};
};

}  // namespace

TileOrders::TileOrders(const HostTwin& kernel, const KernelSpace& space)
    : begin_(compile_time_parameters(kernel)), end_(kernel.parameters().size()) {
  const KernelSpace orders{
      space.kernel,
      {space.parameters.begin() + static_cast<std::ptrdiff_t>(begin_), space.parameters.end()}};
  for (std::int64_t i = 0; i < size_of(orders.parameters); ++i) {
    const Config values = config_at(kernel, orders, i);
    Config order{&kernel, {}};
    std::copy_n(values.values.begin(), end_ - begin_, order.values.begin() + begin_);
    configs_.push_back(order);
  }
  std::sort(configs_.begin(), configs_.end(),
            [](const Config& a, const Config& b) { return a.values < b.values; });
  for (const Config& config : configs_) orders_.push_back(kernel.tile_order(config));
}

Config TileOrders::at(const Config& code, std::size_t i) const {
  Config config = code;
  put(i, config);
  return config;
}

void TileOrders::put(std::size_t i, Config& code) const {
  for (std::size_t p = begin_; p < end_; ++p) code.values[p] = configs_[i].values[p];
}

std::vector<std::int64_t> for_each_sound_code(const KernelSpace& space, const Config& first,
                                              const KernelTraits& traits,
                                              const std::function<void(const Config& code)>& visit,
                                              std::int64_t most_ring_bytes) {
  Walk walk(space, first, traits, visit, most_ring_bytes);
  walk.descend(0);
  return std::move(walk).broken();
}

}  // namespace autotune::search

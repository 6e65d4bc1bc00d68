#include "search/codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

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
  Walk(const HostTwin& kernel, const KernelSpace& space, const KernelTraits& traits,
       const CodeVisitor& visitor)
      : constraints_(kernel.constraints()),
        ranges_(std::span(space.parameters).first(compile_time_parameters(kernel))),
        traits_(traits),
        visitor_(visitor),
        config_{&kernel, {}} {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < constraints_.size(); ++i) {
      const auto read = static_cast<std::size_t>(std::bit_width(constraints_[i].reads));
      for (const std::size_t settled = std::min(read, ranges_.size()); depth < settled; ++depth) {
        ends_[depth] = i;
      }
    }
    for (; depth <= ranges_.size(); ++depth) ends_[depth] = constraints_.size();
  }

  // With the first `depth` parameters set.
  void descend(std::size_t depth) {
    for (std::size_t i = depth == 0 ? 0 : ends_[depth - 1]; i < ends_[depth]; ++i) {
      if (constraints_[i].holds(config_.values, traits_)) continue;
      visitor_.broken(static_cast<std::int16_t>(i), size_of(ranges_.subspan(depth)));
      return;
    }
    if (depth == ranges_.size()) {
      visitor_.sound(config_);
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
  const CodeVisitor& visitor_;
  Config config_;
  std::array<std::size_t, kMaxParameters + 1>
      ends_{};  // by depth: behind the constraints to look at
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
}

Config TileOrders::at(const Config& code, std::size_t i) const {
  Config config = code;
  for (std::size_t p = begin_; p < end_; ++p) config.values[p] = configs_[i].values[p];
  return config;
}

bool TileOrders::same(const Config& a, const Config& b) const {
  return std::equal(a.values.begin() + begin_, a.values.begin() + end_, b.values.begin() + begin_);
}

void for_each_code(const HostTwin& kernel, const KernelSpace& space, const KernelTraits& traits,
                   const CodeVisitor& visitor) {
  Walk(kernel, space, traits, visitor).descend(0);
}

}  // namespace autotune::search

#include "search/spread.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "search/draw.h"

namespace autotune::search {
namespace {

constexpr std::size_t kOfCode = 2;  // configs of one code, in different orders of tiles

// A number that belongs to a config (or part of one) whatever problem and list it stands in.
std::uint64_t lot(const Config& config, std::size_t values, std::uint64_t seed) {
  std::uint64_t state = seed;
  const auto mix = [&state](std::uint64_t value) { state = Random(state ^ value).next(); };
  for (const char letter : config.kernel->name()) mix(static_cast<unsigned char>(letter));
  for (std::size_t i = 0; i < values; ++i) {
    mix(static_cast<std::uint32_t>(config.values[i]));
  }
  return state;
}

struct Drawn {
  std::uint64_t lot;
  std::size_t candidate;
  friend auto operator<=>(const Drawn&, const Drawn&) = default;
};

struct Code {
  std::uint64_t lot;
  std::vector<Drawn> configs;
};

// The candidates of one tile shape in the order in which they are drawn: codes in the order of
// their lots, first one config of each, then the second ones.
std::vector<std::size_t> order_of(std::vector<Code> codes) {
  std::sort(codes.begin(), codes.end(), [](const Code& a, const Code& b) { return a.lot < b.lot; });
  std::vector<std::size_t> order;
  for (std::size_t turn = 0; turn < kOfCode; ++turn) {
    for (const Code& code : codes) {
      if (turn < code.configs.size()) order.push_back(code.configs[turn].candidate);
    }
  }
  return order;
}

// One of each list by turns, until all are empty.
std::vector<std::size_t> by_turns(const std::vector<std::vector<std::size_t>>& lists) {
  std::vector<std::size_t> merged;
  bool more = true;
  for (std::size_t turn = 0; more; ++turn) {
    more = false;
    for (const std::vector<std::size_t>& list : lists) {
      if (turn >= list.size()) continue;
      merged.push_back(list[turn]);
      more = true;
    }
  }
  return merged;
}

struct Shape {
  std::uint64_t lot = 0;
  std::unordered_map<Config, Code, ConfigHash> codes;
};
using Kernel = std::map<std::pair<std::int32_t, std::int32_t>, Shape>;  // by block_m, block_n

std::vector<std::size_t> draw_of(const Kernel& kernel) {
  std::vector<const Shape*> shapes;
  for (const auto& [size, shape] : kernel) shapes.push_back(&shape);
  std::sort(shapes.begin(), shapes.end(),
            [](const Shape* a, const Shape* b) { return a->lot < b->lot; });
  std::vector<std::vector<std::size_t>> lists;
  for (const Shape* shape : shapes) {
    std::vector<Code> codes;
    for (const auto& [config, code] : shape->codes) codes.push_back(code);
    for (Code& code : codes) std::sort(code.configs.begin(), code.configs.end());
    lists.push_back(order_of(std::move(codes)));
  }
  return by_turns(lists);
}

}  // namespace

std::vector<std::size_t> draw_spread(const Plan& plan, std::size_t count, std::uint64_t seed) {
  std::map<std::string_view, Kernel> kernels;
  for (std::size_t i = 0; i < plan.survivors.size(); ++i) {
    const Config& config = plan.survivors[i].config;
    const std::pair size(value_of(config, "block_m"), value_of(config, "block_n"));
    Shape& shape = kernels[config.kernel->name()][size];
    Config tile = config;
    tile.values = {size.first, size.second};
    shape.lot = lot(tile, 2, seed);
    const Config code = code_of(config);
    Code& drawn = shape.codes[code];
    drawn.lot = lot(code, code.values.size(), seed);
    drawn.configs.push_back({lot(config, config.values.size(), seed), i});
  }
  std::vector<std::vector<std::size_t>> lists;
  for (const auto& [name, kernel] : kernels) lists.push_back(draw_of(kernel));
  std::vector<std::size_t> drawn = {0};
  for (const std::size_t candidate : by_turns(lists)) {
    if (drawn.size() >= count) break;
    if (candidate != 0) drawn.push_back(candidate);
  }
  return drawn;
}

}  // namespace autotune::search

#include "search/strategy.h"

#include <fmt/format.h>

#include <utility>

#include "search/strategies.h"

namespace autotune::search {
namespace {

struct Entry {
  std::string_view name;
  bool patient;  // ends by itself before all is measured
  std::unique_ptr<Strategy> (*make)(const Plan& plan, StrategyOptions options);
};

constexpr Entry kStrategies[] = {
    {"exhaustive", false, [](const Plan& plan, StrategyOptions) { return make_exhaustive(plan); }},
    {"random", false,
     [](const Plan& plan, StrategyOptions options) { return make_random(plan, options.seed); }},
    {"evolution", true,
     [](const Plan& plan, StrategyOptions options) { return make_evolution(plan, options); }},
    {"model", true,
     [](const Plan& plan, StrategyOptions options) {
       return make_model(plan, std::move(options));
     }},
};

Expected<const Entry*> find_strategy(std::string_view name) {
  for (const Entry& entry : kStrategies) {
    if (entry.name == name) return &entry;
  }
  return fail(
      ErrorCode::bad_input,
      fmt::format("unknown strategy '{}': choose exhaustive, random, evolution or model", name));
}

}  // namespace

Expected<void> check_strategy(std::string_view name, std::size_t patience) {
  const auto found = find_strategy(name);
  if (!found) return tl::unexpected(found.error());
  if (patience > 0 && !(*found)->patient) {
    return fail(ErrorCode::bad_input,
                fmt::format("{} goes on until all is measured: it has no patience to set", name));
  }
  return {};
}

Expected<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const Plan& plan,
                                                  StrategyOptions options) {
  if (auto good = check_strategy(name, options.patience); !good) {
    return tl::unexpected(good.error());
  }
  return (*find_strategy(name))->make(plan, std::move(options));
}

}  // namespace autotune::search

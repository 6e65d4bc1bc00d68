#include "search/strategy.h"

#include <fmt/format.h>

#include <utility>

#include "search/strategies.h"

namespace autotune::search {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const Plan& plan, std::uint64_t seed, HasCode has_code);
};

constexpr Entry kStrategies[] = {
    {"exhaustive", [](const Plan& plan, std::uint64_t, HasCode) { return make_exhaustive(plan); }},
    {"random",
     [](const Plan& plan, std::uint64_t seed, HasCode) { return make_random(plan, seed); }},
    {"evolution",
     [](const Plan& plan, std::uint64_t seed, HasCode) { return make_evolution(plan, seed); }},
    {"model", [](const Plan& plan, std::uint64_t,
                 HasCode has_code) { return make_model(plan, std::move(has_code)); }},
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

Expected<void> check_strategy(std::string_view name) {
  const auto found = find_strategy(name);
  if (!found) return tl::unexpected(found.error());
  return {};
}

Expected<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const Plan& plan,
                                                  std::uint64_t seed, HasCode has_code) {
  const auto found = find_strategy(name);
  if (!found) return tl::unexpected(found.error());
  return (*found)->make(plan, seed, std::move(has_code));
}

}  // namespace autotune::search

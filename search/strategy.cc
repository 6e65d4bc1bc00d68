#include "search/strategy.h"

#include <fmt/format.h>

#include "search/strategies.h"

namespace autotune::search {

Expected<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const Plan& plan,
                                                  std::uint64_t seed) {
  if (name == "exhaustive") return make_exhaustive(plan);
  if (name == "random") return make_random(plan, seed);
  if (name == "model") return make_model(plan);
  return fail(ErrorCode::bad_input,
              fmt::format("unknown strategy '{}': choose exhaustive, random or model", name));
}

}  // namespace autotune::search

// The strategies inside search/; make_strategy in strategy.h picks one by name.
#pragma once

#include "search/strategy.h"

namespace autotune::search {

std::unique_ptr<Strategy> make_exhaustive(const Plan& plan);
std::unique_ptr<Strategy> make_random(const Plan& plan, std::uint64_t seed);
std::unique_ptr<Strategy> make_evolution(const Plan& plan, const StrategyOptions& options);
std::unique_ptr<Strategy> make_model(const Plan& plan, StrategyOptions options);

}  // namespace autotune::search

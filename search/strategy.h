// Strategies: which survivors to measure next. They see only the ranked list, what was measured,
// and whose code is there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/trial.h"
#include "search/plan.h"

namespace autotune::search {

struct Observation {
  std::size_t candidate;  // index into Plan::survivors
  Outcome outcome;
  double median_us;  // only for Outcome::ok
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;
  // The next batch: indices into Plan::survivors that were never returned before, at most `limit`.
  // Empty: the strategy is done, or, where not all of what it returned is in the history, may go on
  // when more of it is. The first batch always holds index 0, the default config.
  virtual std::vector<std::size_t> next(std::span<const Observation> history,
                                        std::size_t limit) = 0;
};

// Whether a survivor's code was there before the search, so that measuring it takes no compiler.
using HasCode = std::function<bool(std::size_t candidate)>;

struct StrategyOptions {
  std::uint64_t seed = 1;
  // Configs in a row that may gain less than 1 % before "model" or "evolution" is done; 0: as many
  // as each takes by itself, "model" fewer where gains are not to be expected. The others have no
  // such end.
  std::size_t patience = 0;
  HasCode has_code = {};  // "model" asks it at most once for each survivor
};

// bad_input for a name that is none of "exhaustive", "random", "evolution", "model", and for
// patience that a strategy does not have.
Expected<void> check_strategy(std::string_view name, std::size_t patience = 0);

// bad_input as above. `plan` must outlive it, and what `has_code` needs.
Expected<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const Plan& plan,
                                                  StrategyOptions options = {});

}  // namespace autotune::search

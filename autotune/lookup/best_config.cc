#include <string_view>

#include "autotune/autotune.h"
#include "autotune/lookup/answer.h"
#include "autotune/lookup/device.h"
#include "kernels/problem.h"

namespace autotune {

std::string_view to_string(Match match) {
  switch (match) {
    case Match::exact:
      return "exact";
    case Match::nearest_problem:
      return "nearest_problem";
    case Match::other_device:
      return "other_device";
    case Match::default_config:
      break;
  }
  return "default";
}

Expected<BestConfig> best_config(const Problem& problem, const BestOptions& options) {
  const auto whole = checked(problem);
  if (!whole) return tl::unexpected(whole.error());
  const auto device = lookup::device_for(options);
  if (!device) return tl::unexpected(device.error());
  return lookup::answer_from(options.cache, *whole, *device);
}

}  // namespace autotune

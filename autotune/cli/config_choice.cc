#include "autotune/cli/config_choice.h"

#include <algorithm>
#include <string_view>

#include "autotune/io/builtin.h"
#include "kernels/stages.h"

namespace autotune::cli {

Expected<Config> choose_config(std::string_view option, const std::string& text,
                               const Family& family, const search::Plan* plan) {
  const std::string_view kernel = std::string_view(text).substr(0, text.find(':'));
  const Config* defaults = nullptr;
  if (plan != nullptr) {
    const auto best = std::find_if(
        plan->survivors.begin(), plan->survivors.end(),
        [&](const search::Candidate& each) { return each.config.kernel->name() == kernel; });
    if (best != plan->survivors.end()) defaults = &best->config;
  }
  auto config = parse_config(text, family, defaults);
  if (!config) config.error().message.insert(0, std::string(option) + ' ');
  return config;
}

Expected<Config> choose_for(std::string_view option, const std::string& text,
                            const Problem& problem, const DeviceSpec& device,
                            const lookup::Bounds& bounds) {
  const Family& family = *find_family(problem.family);
  const auto chosen = [&](const std::string& part, std::size_t stage) {
    const Problem own = stage_of(problem, stage);
    const search::Space* space = io::space_for(own.family, bounds.space);
    const auto plan = search::make_plan(own, device, *space, bounds.limits);
    return choose_config(option, part, stage_of(family, stage), plan ? &*plan : nullptr);
  };
  if (stage_count(problem) == 1) return chosen(text, 0);
  // Whatever is not two configs is told as such.
  const auto whole = choose_config(option, text, family, nullptr);
  if (!whole) return whole;
  const std::size_t joint = text.find(kJoint);
  const auto first = chosen(text.substr(0, joint), 0);
  if (!first) return first;
  const auto second = chosen(text.substr(joint + kJoint.size()), 1);
  if (!second) return second;
  return join(*first, *second);
}

}  // namespace autotune::cli

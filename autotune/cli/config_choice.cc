#include "autotune/cli/config_choice.h"

#include <algorithm>
#include <string_view>

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

}  // namespace autotune::cli

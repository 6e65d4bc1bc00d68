#include "autotune/tune/run_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

namespace autotune::tune {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// What restricts or steers a run, as canonical JSON (keys sorted).
std::string options_text(const TuneOptions& options) {
  nlohmann::json text{{"budget_seconds", options.budget_seconds},
                      {"max_trials", options.max_trials},
                      {"strategy", options.strategy},
                      {"patience", options.patience},
                      {"seed", options.seed},
                      {"fresh", options.fresh},
                      {"from_scratch", options.from_scratch},
                      {"max_smem", options.limits.max_smem},
                      {"keep_slow", options.limits.keep_slow},
                      {"max_sms", options.limits.max_sms},
                      {"space", options.space.origin},
                      {"exclude", nlohmann::json::array()}};
  for (const ConfigPattern& pattern : options.limits.excludes) {
    text["exclude"].push_back(pattern.text);
  }
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

cache::RunInfo run_info(const DeviceSpec& device, const TuneOptions& options,
                        worker::MeasureWorker& measurer) {
  cache::RunInfo info;
  info.device_name = device.name;
  if (auto driver = measurer.driver()) info.driver = *driver;
  info.version = AUTOTUNE_VERSION;
  info.options = options_text(options);
  info.host = host_name();
  return info;
}

std::string run_fingerprint(const DeviceSpec& device, const search::Limits& limits) {
  const std::string whole = fingerprint(device);
  return limits.max_sms > 0 ? fmt::format("{} max_sms={}", whole, limits.max_sms) : whole;
}

}  // namespace autotune::tune

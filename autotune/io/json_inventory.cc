// The documents of devices and cache.
#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "autotune/io/device_fields.h"
#include "autotune/io/json_values.h"

namespace autotune::io {
namespace {

Json json_of(const ArchLimits& limits) {
  Json json = Json::object();
  const auto add = [&json](std::string_view name, auto value, int) {
    json[std::string(name)] = value;
  };
  visit_own_limits(limits, add);
  visit_common_limits(limits, add);
  json["features"] = Json::array();
  for (const FeatureName& feature : kFeatureNames) {
    if (limits.has(feature.feature)) json["features"].push_back(feature.name);
  }
  json["mma_dtypes"] = limits.mma_dtypes;
  return json;
}

Json json_of(const DeviceSpec& device) {
  Json json = {{"name", device.name},
               {"slug", device.slug},
               {"cc", fmt::format("{}.{}", device.limits.cc / 10, device.limits.cc % 10)},
               {"arch", device.limits.arch}};
  const auto add = [&json](std::string_view name, auto value) { json[std::string(name)] = value; };
  visit_counts(device, add);
  visit_rates(device, add);
  visit_tensor_peaks(device, [&json](std::string_view name, double value) {
    json[std::string(name)] = or_null(value);
  });
  visit_optional_counts(device, [&json](std::string_view name, int value) {
    json[std::string(name)] = or_null(std::int64_t{value});
  });
  json["unverified"] = device.unverified;
  json["derived"] = device.derived;
  Json curve = Json::array();
  for (const ReadPoint& point : device.cold_read_us) {
    curve.push_back({{"mib", point.mib}, {"us", point.us}});
  }
  json["measured"] = {{"launch_us", or_null(device.launch_us)},
                      {"f16_bf16_tflops", or_null(device.measured_f16_bf16_tflops)},
                      {"cold_read_us", curve}};
  Json model = Json::object();
  visit_model(device.model, [&model](std::string_view name, double value, double, double) {
    model[std::string(name)] = value;
  });
  json["model"] = model;
  json["limits"] = json_of(device.limits);
  return json;
}

Json json_of(const PresentJson& present) {
  Json json = {{"index", present.index}};
  json.update(json_of(present.device));
  return json;
}

Json json_of(const CachedTrialJson& trial) {
  return {{"config", trial.config},
          {"outcome", trial.outcome},
          {"median_us", or_null(trial.median_us)},
          {"log", or_null(trial.log)}};
}

Json json_of(const CachedWinnerJson& winner) {
  return {{"device", winner.device},
          {"problem", problem_json(winner.problem)},
          {"config", winner.config},
          {"median_us", winner.median_us},
          {"tflops", winner.tflops},
          {"default_us", or_null(winner.default_us)},
          {"lead_percent", winner.lead_percent},
          {"tie", winner.tie},
          {"compiler", winner.compiler},
          {"source_hash", winner.source_hash},
          {"time", winner.time}};
}

}  // namespace

std::string to_json(const DevicesJson& devices) {
  return document({{"present", array_of<PresentJson>(devices.present, json_of)},
                   {"why_none", or_null(devices.why_none)},
                   {"known", array_of<DeviceSpec>(devices.known, json_of)}});
}

std::string to_json(const ErrorJson& failure) { return document({{"error", failure.error}}); }

std::string to_json(const CachePathJson& cache) {
  return document({{"path", cache.path}, {"exists", cache.exists}});
}

std::string to_json(const CacheListJson& cache) {
  Json winners = Json::array();
  for (const CachedWinnerJson& winner : cache.winners) {
    Json json = json_of(winner);
    if (cache.show) json["trials"] = array_of<CachedTrialJson>(winner.trials, json_of);
    winners.push_back(std::move(json));
  }
  return document({{"path", cache.path}, {"winners", winners}});
}

std::string to_json(const CacheVerifyJson& cache) {
  return document({{"path", cache.path},
                   {"sound", cache.findings.empty()},
                   {"findings", cache.findings},
                   {"trials", cache.trials},
                   {"winners", cache.winners},
                   {"cubins", cache.cubins}});
}

std::string to_json(const CacheRemoveJson& cache) {
  return document({{"path", cache.path}, {"removed", cache.removed}});
}

std::string to_json(const CacheMergeJson& cache) {
  Json left_out = Json::array();
  for (const LeftOutJson& each : cache.left_out) {
    left_out.push_back(
        {{"file", each.file}, {"problem", problem_json(each.problem)}, {"config", each.config}});
  }
  return document({{"path", cache.path},
                   {"files", cache.files},
                   {"runs", cache.runs},
                   {"trials", cache.trials},
                   {"winners", cache.winners},
                   {"cubins", cache.cubins},
                   {"left_out", std::move(left_out)}});
}

std::string import_options(const std::string& file) {
  return Json{{"import", file}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const CacheExportJson& cache) {
  Json files = Json::array();
  for (const ExportedFileJson& file : cache.files) {
    files.push_back({{"device", file.device}, {"file", file.file}, {"winners", file.winners}});
  }
  Json left_out = Json::array();
  for (const StaleWinnerJson& each : cache.left_out) {
    left_out.push_back({{"device", each.device},
                        {"problem", problem_json(each.problem)},
                        {"config", each.config}});
  }
  return document({{"path", cache.path}, {"files", files}, {"left_out", std::move(left_out)}});
}

}  // namespace autotune::io

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "autotune/io/device_fields.h"
#include "autotune/io/load.h"
#include "autotune/io/yaml_map.h"

namespace autotune::io {
namespace {

constexpr std::int64_t kMaxCount = 2'147'483'647;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr double kMaxRate = 1e9;

template <class T>
constexpr std::int64_t max_of() {
  return sizeof(T) == 8 ? kMaxBytes : kMaxCount;
}

// "9.0" -> 90; 0 for anything else.
int parse_cc(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 2 || text.size() != dot + 2) return 0;
  int major = 0;
  const auto result = std::from_chars(text.data(), text.data() + dot, major);
  const char minor = text.back();
  if (result.ec != std::errc() || result.ptr != text.data() + dot) return 0;
  return minor < '0' || minor > '9' ? 0 : major * 10 + (minor - '0');
}

int read_cc(YamlMap& map) {
  const std::string text = map.text("cc");
  const int cc = parse_cc(text);
  if (cc <= 0 && !text.empty()) {
    map.reject(
        map.find("cc")->line,
        fmt::format("cc: expected a compute capability like 9.0, found {}", in_quotes(text)));
  }
  return cc;
}

void check_limits(YamlMap& map, const ArchLimits& limits) {
  if (limits.smem_optin_per_block + limits.smem_reserved_per_block > limits.smem_per_sm) {
    map.reject(map.line(),
               fmt::format("smem_optin_per_block {} and smem_reserved_per_block {} exceed "
                           "smem_per_sm {}",
                           limits.smem_optin_per_block, limits.smem_reserved_per_block,
                           limits.smem_per_sm));
  }
}

// Reads a limit that must be there.
auto required_limits(YamlMap& map) {
  return [&map](std::string_view name, auto& member, int least) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = static_cast<Member>(map.integer(name, least, max_of<Member>()));
  };
}

Expected<ArchLimits> read_common(const YamlNode& node, const std::string& origin) {
  ArchLimits limits;
  YamlMap map(node, origin, "common");
  visit_common_limits(limits, required_limits(map));
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  return limits;
}

Expected<ArchLimits> read_capability(const YamlNode& node, const std::string& origin,
                                     const ArchLimits& common) {
  ArchLimits limits = common;
  YamlMap map(node, origin, "a compute capability");
  limits.cc = read_cc(map);
  limits.arch = map.text("arch");
  visit_own_limits(limits, required_limits(map));
  std::vector<std::string> features;
  for (const FeatureName& feature : kFeatureNames) features.emplace_back(feature.name);
  for (const std::string& name : map.names("features", features)) {
    for (const FeatureName& feature : kFeatureNames) {
      if (feature.name == name) limits.features |= static_cast<std::uint32_t>(feature.feature);
    }
  }
  limits.mma_dtypes = map.names("mma_dtypes", {"f16", "bf16", "tf32", "f64", "e4m3", "e5m2"});
  check_limits(map, limits);
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  return limits;
}

// `limits:` of a GPU's file replaces some of its compute capability's.
Expected<void> override_limits(const YamlNode& node, const std::string& origin,
                               ArchLimits& limits) {
  YamlMap map(node, origin, "limits");
  const auto visit = [&map](std::string_view name, auto& member, int least) {
    if (map.has(name)) required_limits(map)(name, member, least);
  };
  visit_own_limits(limits, visit);
  visit_common_limits(limits, visit);
  check_limits(map, limits);
  return map.finish();
}

Expected<void> read_measured(const YamlNode& node, const std::string& origin, DeviceSpec& device) {
  YamlMap map(node, origin, "measured");
  if (map.has("launch_us")) device.launch_us = map.number("launch_us", 0, 1e6);
  if (map.has("f16_bf16_tflops")) {
    device.measured_f16_bf16_tflops = map.number("f16_bf16_tflops", 0, kMaxRate);
  }
  if (map.has("cold_read_us")) {
    for (const YamlNode& item : map.sequence("cold_read_us")) {
      YamlMap point(item, origin, "a point of cold_read_us");
      const ReadPoint read{point.number("mib", 1e-6, 1e9), point.number("us", 1e-6, 1e9)};
      if (const auto done = point.finish(); !done) return done;
      if (!device.cold_read_us.empty() &&
          (read.mib <= device.cold_read_us.back().mib || read.us < device.cold_read_us.back().us)) {
        map.reject(item.line, "cold_read_us: points must ascend in mib and not descend in us");
      }
      device.cold_read_us.push_back(read);
    }
  }
  return map.finish();
}

// `model:` replaces the defaults of whatever coefficients it names.
Expected<void> read_model(const YamlNode& node, const std::string& origin,
                          ModelCoefficients& model) {
  YamlMap map(node, origin, "model");
  visit_model(model, [&map](std::string_view name, double& member, double lo, double hi) {
    if (map.has(name)) member = map.number(name, lo, hi);
  });
  return map.finish();
}

std::string known_ccs(const std::vector<ArchLimits>& capabilities) {
  std::string list;
  for (const ArchLimits& limits : capabilities) {
    list += fmt::format("{}{}.{}", list.empty() ? "" : ", ", limits.cc / 10, limits.cc % 10);
  }
  return list;
}

// A peak that is left out means that there is no such instruction.
void check_tensor_peaks(YamlMap& map, int line, const DeviceSpec& device) {
  const std::vector<std::string>& offered = device.limits.mma_dtypes;
  const auto check = [&](std::string_view dtype, std::string_view name, double tflops) {
    if (tflops > 0 || std::find(offered.begin(), offered.end(), dtype) == offered.end()) return;
    map.reject(line, fmt::format("{} is missing, and {} has tensor cores for {}", name,
                                 device.limits.arch, dtype));
  };
  check("f16", "f16_bf16_tflops", device.f16_bf16_tflops);
  check("tf32", "tf32_tflops", device.tf32_tflops);
}

}  // namespace

Expected<std::vector<ArchLimits>> parse_compute_capabilities(std::string_view text,
                                                             const std::string& origin) {
  const Expected<YamlNode> root = parse_yaml(text, origin);
  if (!root) return tl::unexpected(root.error());
  YamlMap map(*root, origin, "the file");
  const YamlNode* common_node = map.require("common");
  const std::vector<YamlNode>& rows = map.sequence("capabilities");
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  const Expected<ArchLimits> common = read_common(*common_node, origin);
  if (!common) return tl::unexpected(common.error());

  std::vector<ArchLimits> capabilities;
  for (const YamlNode& row : rows) {
    Expected<ArchLimits> limits = read_capability(row, origin, *common);
    if (!limits) return tl::unexpected(limits.error());
    if (!capabilities.empty() && limits->cc <= capabilities.back().cc) {
      return tl::unexpected(error_at(origin, row.line, "compute capabilities must ascend in cc"));
    }
    capabilities.push_back(*std::move(limits));
  }
  return capabilities;
}

Expected<DeviceSpec> parse_gpu(std::string_view text, const std::string& origin,
                               const std::vector<ArchLimits>& capabilities) {
  const Expected<YamlNode> root = parse_yaml(text, origin);
  if (!root) return tl::unexpected(root.error());
  YamlMap map(*root, origin, "a GPU");
  DeviceSpec device;
  std::vector<std::string> marked{"cc"};  // fields that may be marked unverified or derived
  device.name = map.text("name");
  if (std::any_of(device.name.begin(), device.name.end(),
                  [](unsigned char c) { return std::iscntrl(c) != 0; })) {
    map.reject(map.find("name")->line, "name: holds a line break or another control character");
  }
  device.slug = slug_of(device.name);
  const int cc = read_cc(map);
  visit_counts(device, [&](std::string_view name, auto& member) {
    using Member = std::remove_reference_t<decltype(member)>;
    member = static_cast<Member>(map.integer(name, 1, max_of<Member>()));
    marked.emplace_back(name);
  });
  visit_rates(device, [&](std::string_view name, double& member) {
    member = map.number(name, 1e-3, kMaxRate);
    marked.emplace_back(name);
  });
  visit_tensor_peaks(device, [&](std::string_view name, double& member) {
    if (map.has(name)) member = map.number(name, 1e-3, kMaxRate);
    marked.emplace_back(name);
  });
  visit_optional_counts(device, [&](std::string_view name, int& member) {
    const int most = map.has("sm_count") ? device.sm_count : max_of<int>();
    if (map.has(name)) member = static_cast<int>(map.integer(name, 1, most));
    marked.emplace_back(name);
  });
  if (map.has("unverified")) device.unverified = map.names("unverified", marked);
  if (map.has("derived")) device.derived = map.names("derived", marked);
  const YamlNode* limits = map.find("limits");
  const YamlNode* measured = map.find("measured");
  const YamlNode* model = map.find("model");
  const auto capability = std::find_if(capabilities.begin(), capabilities.end(),
                                       [cc](const ArchLimits& row) { return row.cc == cc; });
  if (capability != capabilities.end()) {
    device.limits = *capability;
    check_tensor_peaks(map, map.find("cc")->line, device);
  } else if (cc > 0) {
    map.reject(map.find("cc")->line, fmt::format("cc: {}.{} is not known; known: {}", cc / 10,
                                                 cc % 10, known_ccs(capabilities)));
  }
  if (const auto done = map.finish(); !done) return tl::unexpected(done.error());
  if (limits != nullptr) {
    const auto done = override_limits(*limits, origin, device.limits);
    if (!done) return tl::unexpected(done.error());
  }
  if (measured != nullptr) {
    const auto done = read_measured(*measured, origin, device);
    if (!done) return tl::unexpected(done.error());
  }
  if (model != nullptr) {
    const auto done = read_model(*model, origin, device.model);
    if (!done) return tl::unexpected(done.error());
  }
  return device;
}

}  // namespace autotune::io

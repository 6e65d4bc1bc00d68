// What configs/ held when this program was built. The tables are C++ made at build time from the
// YAML (by autotune/io/embed_configs.cc), so nothing here parses YAML.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/device_spec.h"
#include "search/space.h"

namespace autotune::io {

std::span<const ArchLimits> known_capabilities();              // by cc, ascending
const ArchLimits* find_capability(int cc);                     // nullptr where unknown
std::span<const DeviceSpec> known_devices();                   // by cc, then name
const DeviceSpec* find_device(std::string_view name_or_slug);  // in any spelling of that slug
const DeviceSpec* find_fingerprint(const std::string& print);
const search::Space* default_space(std::string_view family);
// `given` where it is of that family, else the built-in one.
const search::Space* space_for(std::string_view family, const search::Space* given);

struct BuiltinText {
  std::string_view name;  // "gemm"
  std::string_view text;  // the YAML
};
std::span<const BuiltinText> suite_texts();

struct BuiltinTuned {
  std::string_view device;  // "NVIDIA H200"
  Problem problem;
  std::string_view config;
  double median_us;
};
std::span<const BuiltinTuned> tuned_entries();

}  // namespace autotune::io

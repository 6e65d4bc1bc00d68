#include "autotune/io/builtin.h"

#include <algorithm>
#include <string>

#include "autotune/io/builtin_tables.h"

namespace autotune::io {

std::span<const ArchLimits> known_capabilities() {
  static const std::vector<ArchLimits> table = tables::capabilities();
  return table;
}

const ArchLimits* find_capability(int cc) {
  for (const ArchLimits& limits : known_capabilities()) {
    if (limits.cc == cc) return &limits;
  }
  return nullptr;
}

std::span<const DeviceSpec> known_devices() {
  static const std::vector<DeviceSpec> table = tables::devices();
  return table;
}

const DeviceSpec* find_device(std::string_view name_or_slug) {
  const std::string slug = slug_of(name_or_slug);
  for (const DeviceSpec& device : known_devices()) {
    if (device.name == name_or_slug || device.slug == slug) return &device;
  }
  return nullptr;
}

const DeviceSpec* find_fingerprint(const std::string& print) {
  const DeviceSpec* device = find_device(name_in_fingerprint(print));
  return device != nullptr && fingerprint(*device) == print ? device : nullptr;
}

const search::Space* space_for(std::string_view family, const search::Space* given) {
  return given != nullptr && given->family == family ? given : default_space(family);
}

const search::Space* default_space(std::string_view family) {
  static const std::vector<search::Space> table = tables::spaces();
  const auto found = std::find_if(table.begin(), table.end(), [family](const search::Space& space) {
    return space.family == family;
  });
  return found == table.end() ? nullptr : &*found;
}

std::span<const BuiltinText> suite_texts() {
  static const std::vector<BuiltinText> table = tables::suites();
  return table;
}

std::span<const BuiltinTuned> tuned_entries() {
  static const std::vector<BuiltinTuned> table = tables::tuned();
  return table;
}

}  // namespace autotune::io

#include "search/space.h"

#include <fmt/format.h>

#include <limits>

namespace autotune::search {

std::int64_t size_of(std::span<const ParameterRange> parameters) {
  std::int64_t size = 1;
  for (const ParameterRange& range : parameters) {
    const auto count = static_cast<std::int64_t>(range.values.size());
    if (count == 0) return 0;
    if (size > std::numeric_limits<std::int64_t>::max() / count) {
      return std::numeric_limits<std::int64_t>::max();
    }
    size *= count;
  }
  return size;
}

std::int64_t size_of(const KernelSpace& space) { return size_of(std::span(space.parameters)); }

Config config_at(const HostTwin& kernel, const KernelSpace& space, std::int64_t index) {
  Config config{&kernel, {}};
  for (std::size_t p = space.parameters.size(); p-- > 0;) {
    const std::vector<std::int32_t>& values = space.parameters[p].values;
    const auto count = static_cast<std::int64_t>(values.size());
    config.values[p] = values[static_cast<std::size_t>(index % count)];
    index /= count;
  }
  return config;
}

namespace {

Expected<void> validate_range(const Space& space, const KernelSpace& kernel_space,
                              const ParameterRange& range, const Parameter& parameter) {
  if (range.name != parameter.name) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: kernel {}: parameter '{}' stands where '{}' belongs; list every "
                            "parameter in the kernel's order",
                            space.origin, kernel_space.kernel, range.name, parameter.name));
  }
  if (range.values.empty()) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: kernel {}: parameter '{}' has no values; give it at least one",
                            space.origin, kernel_space.kernel, range.name));
  }
  for (const std::int32_t value : range.values) {
    if (value < parameter.lo || value > parameter.hi) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: kernel {}: {}={} is outside {}..{}", space.origin,
                              kernel_space.kernel, range.name, value, parameter.lo, parameter.hi));
    }
  }
  return {};
}

}  // namespace

Expected<void> validate(const Space& space, const Family& family) {
  if (space.family != family.name) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: this is a space of family '{}', but '{}' is asked for",
                            space.origin, space.family, family.name));
  }
  for (const KernelSpace& kernel_space : space.kernels) {
    const HostTwin* kernel = find_kernel(family, kernel_space.kernel);
    if (kernel == nullptr) {
      return fail(ErrorCode::bad_input,
                  fmt::format("{}: family {} has no kernel '{}'", space.origin, family.name,
                              kernel_space.kernel));
    }
    const std::span<const Parameter> parameters = kernel->parameters();
    if (kernel_space.parameters.size() != parameters.size()) {
      return fail(
          ErrorCode::bad_input,
          fmt::format("{}: kernel {} has {} parameters, the space gives {}", space.origin,
                      kernel_space.kernel, parameters.size(), kernel_space.parameters.size()));
    }
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      auto valid = validate_range(space, kernel_space, kernel_space.parameters[p], parameters[p]);
      if (!valid) return valid;
    }
  }
  return {};
}

}  // namespace autotune::search

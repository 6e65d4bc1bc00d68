#include "kernels/config.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/stages.h"

namespace autotune {
namespace {

// "kernel:name=value,..." cut into its parts; views into the text that was read.
struct Pieces {
  struct Assignment {
    std::string_view name;
    std::string_view value;
  };
  std::string_view kernel;
  std::vector<Assignment> assignments;
};

int index_of(const HostTwin& kernel, std::string_view name) {
  const auto parameters = kernel.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::string kernel_names(const Family& family) {
  std::string list;
  for (const HostTwin* kernel : family.kernels) {
    if (!list.empty()) list += ", ";
    list += kernel->name();
  }
  return list;
}

std::string parameter_names(const HostTwin& kernel) {
  std::string list;
  for (const Parameter& parameter : kernel.parameters()) {
    if (!list.empty()) list += ", ";
    list += parameter.name;
  }
  return list;
}

// Plain decimal without sign or leading zeros, so that every value has one spelling.
std::optional<std::int32_t> parse_value(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

tl::unexpected<Error> wrong(std::string_view text, std::string_view reason) {
  return fail(ErrorCode::bad_input, fmt::format("'{}': {}", text, reason));
}

Expected<Pieces> cut(std::string_view text) {
  Pieces pieces;
  const std::size_t colon = text.find(':');
  pieces.kernel = text.substr(0, colon);
  if (colon == std::string_view::npos) return pieces;
  std::string_view rest = text.substr(colon + 1);
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view piece = rest.substr(0, comma);
    const std::size_t equals = piece.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return wrong(text, fmt::format("'{}' is not name=value", piece));
    }
    if (pieces.assignments.size() == kMaxParameters) {
      return wrong(text, fmt::format("more than {} parameters", kMaxParameters));
    }
    const std::string_view name = piece.substr(0, equals);
    for (const auto& earlier : pieces.assignments) {
      if (earlier.name == name) return wrong(text, fmt::format("{} is given twice", name));
    }
    pieces.assignments.push_back({name, piece.substr(equals + 1)});
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return pieces;
}

tl::unexpected<Error> unknown_kernel(std::string_view text, std::string_view name,
                                     const Family& family) {
  return wrong(text, fmt::format("family {} has no kernel '{}': it has {}", family.name, name,
                                 kernel_names(family)));
}

tl::unexpected<Error> unknown_parameter(std::string_view text, std::string_view name,
                                        const HostTwin& kernel) {
  return wrong(text, fmt::format("kernel {} has no parameter '{}': it has {}", kernel.name(), name,
                                 parameter_names(kernel)));
}

Expected<Config> parse_stages(std::string_view text, const Family& family, const Config* defaults) {
  const std::size_t joint = text.find(kJoint);
  if (joint == std::string_view::npos || text.find(kJoint, joint + 1) != std::string_view::npos) {
    return wrong(text,
                 fmt::format("a config of {} is two, one for each stage: give '{} config{}{} "
                             "config'",
                             family.name, family.stages[0]->name, kJoint, family.stages[1]->name));
  }
  const auto first = parse_config(text.substr(0, joint), *family.stages[0], defaults);
  if (!first) return first;
  const auto second = parse_config(text.substr(joint + kJoint.size()), *family.stages[1],
                                   defaults != nullptr ? defaults->second : nullptr);
  if (!second) return second;
  Config alone = *first;  // without the second of the defaults
  alone.second = nullptr;
  return join(alone, *second);
}

bool any_kernel_has(const Family& family, std::string_view parameter) {
  for (const HostTwin* kernel : family.kernels) {
    if (index_of(*kernel, parameter) >= 0) return true;
  }
  return false;
}

}  // namespace

std::string to_string(const Config& config) {
  if (config.kernel == nullptr) return {};
  std::string text{config.kernel->name()};
  const auto parameters = config.kernel->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    text += i == 0 ? ':' : ',';
    text += parameters[i].name;
    text += '=';
    text += fmt::format_int(config.values[i]).c_str();
  }
  if (config.second != nullptr) text += fmt::format("{}{}", kJoint, to_string(*config.second));
  return text;
}

std::int32_t value_of(const Config& config, std::string_view parameter) {
  const int index = config.kernel == nullptr ? -1 : index_of(*config.kernel, parameter);
  return index < 0 ? -1 : config.values[index];
}

Expected<Config> parse_config(std::string_view text, const Family& family, const Config* defaults) {
  if (!family.stages.empty()) return parse_stages(text, family, defaults);
  const auto pieces = cut(text);
  if (!pieces) return tl::unexpected(pieces.error());
  Config config;
  config.kernel = find_kernel(family, pieces->kernel);
  if (config.kernel == nullptr) return unknown_kernel(text, pieces->kernel, family);

  const auto parameters = config.kernel->parameters();
  if (defaults != nullptr && defaults->kernel == config.kernel) {
    config.values = defaults->values;
  } else {
    for (std::size_t i = 0; i < parameters.size(); ++i) config.values[i] = parameters[i].fallback;
  }
  for (const auto& [name, value_text] : pieces->assignments) {
    const int index = index_of(*config.kernel, name);
    if (index < 0) return unknown_parameter(text, name, *config.kernel);
    const auto value = parse_value(value_text);
    const Parameter& parameter = parameters[index];
    if (!value || *value < parameter.lo || *value > parameter.hi) {
      return wrong(text, fmt::format("{} = '{}' is not possible: give {} to {}", name, value_text,
                                     parameter.lo, parameter.hi));
    }
    config.values[index] = *value;
  }
  return config;
}

Config code_of(const Config& config) {
  Config code = config;
  if (config.kernel == nullptr) return code;
  const auto parameters = config.kernel->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].run_time) code.values[i] = 0;
  }
  return code;
}

std::size_t ConfigHash::operator()(const Config& config) const {
  std::size_t hash = std::hash<const HostTwin*>{}(config.kernel);
  for (const std::int32_t value : config.values) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x100000001b3u;  // FNV-1a's prime
  }
  hash ^= std::hash<const Config*>{}(config.second);
  return hash;
}

Expected<ConfigPattern> parse_pattern(std::string_view text, const Family& family) {
  // The last stage's kernels are those of all.
  if (!family.stages.empty()) return parse_pattern(text, *family.stages.back());
  const auto pieces = cut(text);
  if (!pieces) return tl::unexpected(pieces.error());
  const bool any_kernel = pieces->kernel == "*";
  const HostTwin* kernel = any_kernel ? nullptr : find_kernel(family, pieces->kernel);
  if (!any_kernel && kernel == nullptr) return unknown_kernel(text, pieces->kernel, family);

  ConfigPattern pattern;
  pattern.kernel = pieces->kernel;
  pattern.text = text;
  for (const auto& [name, value_text] : pieces->assignments) {
    if (kernel != nullptr && index_of(*kernel, name) < 0) {
      return unknown_parameter(text, name, *kernel);
    }
    if (any_kernel && !any_kernel_has(family, name)) {
      return wrong(text, fmt::format("no kernel of {} has a parameter '{}'", family.name, name));
    }
    const bool any = value_text == "*";
    const auto value = any ? std::optional<std::int32_t>{0} : parse_value(value_text);
    if (!value) {
      return wrong(text, fmt::format("{} = '{}': give a decimal number or *", name, value_text));
    }
    pattern.terms[pattern.term_count++] = {std::string{name}, *value, any};
  }
  return pattern;
}

bool matches(const ConfigPattern& pattern, const Config& config) {
  if (config.kernel == nullptr) return false;
  if (pattern.kernel != "*" && pattern.kernel != config.kernel->name()) return false;
  for (int i = 0; i < pattern.term_count; ++i) {
    const ConfigPattern::Term& term = pattern.terms[i];
    const int index = index_of(*config.kernel, term.name);
    if (index < 0) return false;
    if (!term.any && config.values[index] != term.value) return false;
  }
  return true;
}

}  // namespace autotune

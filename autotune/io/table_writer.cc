#include "autotune/io/table_writer.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "autotune/io/device_fields.h"

namespace autotune::io {
namespace {

// A C++ string literal; a line of the text per line of the source.
std::string literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n\"\n    \"";
    } else if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string literals(const std::vector<std::string>& texts) {
  std::string result = "{";
  for (const std::string& text : texts) result += literal(text) + ", ";
  return result + "}";
}

// Assignments `object.field = value;`.
class Assigner {
 public:
  Assigner(std::string& out, std::string object) : out_(out), object_(std::move(object)) {}
  template <class T>
  void operator()(std::string_view field, const T& value, int /*least*/ = 0) const {
    out_ += fmt::format("    {}.{} = {};\n", object_, field, value);
  }

 private:
  std::string& out_;
  std::string object_;
};

std::string limits_assignments(const ArchLimits& limits, const std::string& object) {
  std::string out;
  const Assigner assign(out, object);
  assign("cc", limits.cc);
  assign("arch", literal(limits.arch));
  visit_own_limits(limits, assign);
  visit_common_limits(limits, assign);
  assign("features", limits.features);
  assign("mma_dtypes", literals(limits.mma_dtypes));
  return out;
}

std::string device_assignments(const DeviceSpec& device) {
  std::string out;
  const Assigner assign(out, "row");
  assign("name", literal(device.name));
  assign("slug", literal(device.slug));
  visit_counts(device, assign);
  visit_rates(device, assign);
  visit_tensor_peaks(device, assign);
  assign("unverified", literals(device.unverified));
  assign("derived", literals(device.derived));
  assign("launch_us", device.launch_us);
  assign("measured_f16_bf16_tflops", device.measured_f16_bf16_tflops);
  visit_optional_counts(device, assign);
  std::string points;
  for (const ReadPoint& point : device.cold_read_us) {
    points += fmt::format("{{{}, {}}}, ", point.mib, point.us);
  }
  assign("cold_read_us", "{" + points + "}");
  visit_model(device.model, [&out](std::string_view name, double value, double, double) {
    out += fmt::format("    row.model.{} = {};\n", name, value);
  });
  return out + limits_assignments(device.limits, "row.limits");
}

std::string space_assignments(const search::Space& space) {
  std::string kernels;
  for (const search::KernelSpace& kernel : space.kernels) {
    kernels += fmt::format("{{{}, {{", literal(kernel.kernel));
    for (const search::ParameterRange& range : kernel.parameters) {
      std::string values;
      for (const std::int32_t value : range.values) values += fmt::format("{}, ", value);
      kernels += fmt::format("{{{}, {{{}}}}}, ", literal(range.name), values);
    }
    kernels += "}}, ";
  }
  std::string out;
  const Assigner assign(out, "row");
  assign("family", literal(space.family));
  assign("kernels", "{" + kernels + "}");
  assign("origin", literal("built-in"));
  assign("built_in", true);
  return out;
}

std::string tuned_assignments(const std::string& device, const TunedEntry& entry) {
  const Problem& problem = entry.problem;
  std::string out;
  const Assigner assign(out, "row");
  assign("device", literal(device));
  assign("problem.family", literal(problem.family));
  assign("problem.m", problem.m);
  assign("problem.n", problem.n);
  assign("problem.k", problem.k);
  assign("problem.dtype", fmt::format("DType::{}", to_string(problem.dtype)));
  assign("problem.out_dtype", fmt::format("DType::{}", to_string(problem.out_dtype)));
  assign("problem.layout", fmt::format("Layout::{}", to_string(problem.layout)));
  assign("problem.lda", problem.lda);
  assign("problem.ldb", problem.ldb);
  assign("problem.ldc", problem.ldc);
  assign("problem.alpha", problem.alpha);
  assign("problem.beta", problem.beta);
  assign("problem.mode", fmt::format("TimingMode::{}", to_string(problem.mode)));
  assign("problem.exact_fp32", problem.exact_fp32);
  assign("problem.activation", fmt::format("Activation::{}", to_string(problem.activation)));
  assign("config", literal(entry.config));
  assign("median_us", entry.median_us);
  return out;
}

// std::vector<TYPE> NAME() that appends a row for each block of assignments.
std::string table(std::string_view type, std::string_view name,
                  const std::vector<std::string>& rows) {
  std::string out =
      fmt::format("std::vector<{0}> {1}() {{\n  std::vector<{0}> rows;\n", type, name);
  for (const std::string& row : rows) {
    out += fmt::format("  {{\n    {}& row = rows.emplace_back();\n{}  }}\n", type, row);
  }
  return out + "  return rows;\n}\n\n";
}

}  // namespace

std::string tables_source(const Configs& configs) {
  std::vector<std::string> capabilities, devices, spaces, suites, tuned;
  for (const auto& limits : configs.capabilities) {
    capabilities.push_back(limits_assignments(limits, "row"));
  }
  for (const auto& device : configs.devices) devices.push_back(device_assignments(device));
  for (const auto& space : configs.spaces) spaces.push_back(space_assignments(space));
  for (const auto& suite : configs.suites) {
    suites.push_back(fmt::format("    row.name = {};\n    row.text =\n    {};\n",
                                 literal(suite.name), literal(suite.text)));
  }
  for (const auto& file : configs.tuned) {
    for (const auto& entry : file.entries) tuned.push_back(tuned_assignments(file.device, entry));
  }
  return "// Made by embed_configs from configs/.\n"
         "#include \"autotune/io/builtin_tables.h\"\n\n"
         "namespace autotune::io::tables {\n\n" +
         table("ArchLimits", "capabilities", capabilities) +
         table("DeviceSpec", "devices", devices) + table("search::Space", "spaces", spaces) +
         table("BuiltinText", "suites", suites) + table("BuiltinTuned", "tuned", tuned) +
         "}  // namespace autotune::io::tables\n";
}

}  // namespace autotune::io

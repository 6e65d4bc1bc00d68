// All reading of YAML. yaml-cpp's errors become Error with file and line at this border; unknown
// and duplicate keys, wrong types, octal-looking or exponent integers and over-deep files are
// errors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"
#include "kernels/device_spec.h"
#include "kernels/kernel.h"
#include "search/space.h"

namespace autotune::io {

struct SuiteEntry {
  Problem problem;  // checked
  // What the problem's source asks for, 0 where nothing. Results are held to bounds of this
  // program's own (gpu/tolerance.h), of another form, so these are read and not used.
  double rtol = 0;
  double atol = 0;
};

struct Suite {
  std::string name;
  std::string family;
  std::vector<SuiteEntry> entries;
};

// What --dtype and --layout replace: the file's defaults, not a problem's own values.
struct SuiteOverrides {
  std::optional<DType> dtype;
  std::optional<Layout> layout;
};

// `origin` names the text in messages ("configs/suites/gemm.yaml").
Expected<Suite> parse_suite(std::string_view text, const std::string& origin,
                            const SuiteOverrides& overrides);
// A parameter known at run time only that a kernel's values leave out takes its fallback: a file
// from before the kernel gained it stays a whole one.
Expected<search::Space> parse_space(std::string_view text, const std::string& origin);
Expected<std::vector<ArchLimits>> parse_compute_capabilities(std::string_view text,
                                                             const std::string& origin);
Expected<DeviceSpec> parse_gpu(std::string_view text, const std::string& origin,
                               const std::vector<ArchLimits>& capabilities);

// One tuned winner per row: configs/tuned/<slug>.yaml.
struct TunedEntry {
  Problem problem;
  std::string config;
  double median_us = 0;
};
struct TunedFile {
  std::string device;  // name
  std::vector<TunedEntry> entries;
};
Expected<TunedFile> parse_tuned(std::string_view text, const std::string& origin);

// Whole text of a regular file, at most 16 MiB. bad_input for a directory or an oversized file.
Expected<std::string> read_file(const std::filesystem::path& path);

// By NAME (built in) or FILE (contains a '/' or ends in .yaml).
Expected<Suite> load_suite(const std::string& name_or_file, const SuiteOverrides& overrides);
Expected<search::Space> load_space(const std::filesystem::path& file);
Expected<DeviceSpec> load_gpu(const std::filesystem::path& file);

}  // namespace autotune::io

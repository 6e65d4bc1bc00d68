// Helpers of the io tests.
#pragma once

#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>

#include "autotune/io/load.h"
#include "test/support/catch.h"

namespace autotune::io {

// The error's message, or "" where there is none; fails nothing by itself.
template <class T>
std::string message_of(const Expected<T>& result) {
  return result ? std::string() : result.error().message;
}

template <class T>
bool is_bad_input(const Expected<T>& result) {
  return !result && result.error().code == ErrorCode::bad_input;
}

// Matches a text that has `part` in it; the matcher's name differs between Catch2 2 and 3.
inline auto HasText(const std::string& part) {
#ifdef AUTOTUNE_CATCH2_V3
  return Catch::Matchers::ContainsSubstring(part);
#else
  return Catch::Matchers::Contains(part);
#endif
}

inline std::filesystem::path source_dir() { return AUTOTUNE_SOURCE_DIR; }

inline std::string config_text(const std::string& path) {
  const auto text = read_file(source_dir() / "configs" / path);
  return text ? *text : std::string();
}

// configs/gpus has one for each known GPU, beside the table of compute capabilities.
inline std::size_t gpu_files() {
  const std::filesystem::directory_iterator files(source_dir() / "configs/gpus");
  return static_cast<std::size_t>(std::distance(begin(files), end(files))) - 1;
}

inline std::vector<ArchLimits> all_capabilities() {
  const auto rows = parse_compute_capabilities(config_text("gpus/compute_capabilities.yaml"), "cc");
  return rows ? *rows : std::vector<ArchLimits>();
}

}  // namespace autotune::io

#include "autotune/cli/target_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace autotune::cli {
namespace {

namespace fs = std::filesystem;

Error cannot_write(ErrorCode code, std::string_view option, const std::string& file, int reason) {
  return {code, fmt::format("{}: cannot write '{}': {}", option, file,
                            reason != 0 ? std::strerror(reason) : "I/O error")};
}

// A pipe or a device.
bool is_special(const std::string& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) && !fs::is_directory(file, ignored) &&
         !fs::is_regular_file(file, ignored);
}

// With neither links nor dots, also where nothing is there yet; empty where that cannot be told.
fs::path place_of(const std::string& file) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(fs::absolute(file, error), error);
  return place.has_filename() ? place : place.parent_path();  // "folder/" is "folder"
}

// Where a link leads.
fs::path target_of(const std::string& file) {
  std::error_code error;
  fs::path target = fs::canonical(file, error);
  return error ? fs::path(file) : target;
}

// What replace() writes first.
std::string part_of(const std::string& file) {
  return fmt::format("{}.part-{}", target_of(file).string(), getpid());
}

// Its spaces and ends of lines apart. True for an empty file.
bool begins_with(const std::string& file, std::string_view beginning) {
  std::string found;
  std::ifstream stream(file, std::ios::binary);
  for (char c = 0; found.size() < beginning.size() && stream >> c;) found += c;
  return found.empty() || found == beginning;
}

// errno says why not.
bool written(const std::string& file, std::string_view text) {
  errno = 0;
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  return bool(stream);
}

}  // namespace

// Opening a pipe and closing it again would be its reader's end.
Expected<void> check_writable(std::string_view option, const std::string& file,
                              std::string_view beginning) {
  if (is_special(file)) return {};
  std::error_code ignored;
  const bool there = fs::exists(file, ignored);
  errno = 0;
  const bool opened = std::ofstream(file, std::ios::binary | std::ios::app).is_open();
  const int reason = errno;
  if (!opened) return tl::unexpected(cannot_write(ErrorCode::bad_input, option, file, reason));
  if (!there) fs::remove(target_of(file), ignored);
  if (begins_with(file, beginning)) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{}: '{}' exists and holds something else; it was left alone: remove it, "
                          "or give another name",
                          option, file));
}

Expected<void> check_replaceable(std::string_view option, const std::string& file) {
  const auto may = check_writable(option, file);
  return !may || is_special(file) ? may : check_writable(option, part_of(file));
}

bool same_file(const std::string& a, const std::string& b) {
  if (is_special(a)) return false;
  std::error_code ignored;
  if (fs::equivalent(a, b, ignored)) return true;
  const fs::path place = place_of(a);
  return !place.empty() && place == place_of(b);
}

Expected<void> check_apart(const std::vector<Target>& targets) {
  std::vector<Target> files;
  for (const Target& target : targets) {
    if (target.file.empty()) continue;
    if (target.file == "-") {
      if (target.may_be_stdout) continue;
      return fail(ErrorCode::bad_input,
                  fmt::format("{} '-' goes to no stdout: give a file ('./-' for one of that name)",
                              target.option));
    }
    for (const Target& other : files) {
      if (!same_file(other.file, target.file)) continue;
      return fail(ErrorCode::bad_input,
                  fmt::format("{} '{}' and {} '{}' are the same file; give each its own",
                              other.option, other.file, target.option, target.file));
    }
    files.push_back(target);
  }
  return {};
}

Expected<void> write_over(std::string_view option, const std::string& file, std::string_view text) {
  if (written(file, text)) return {};
  return tl::unexpected(cannot_write(ErrorCode::io_failed, option, file, errno));
}

Expected<void> replace(std::string_view option, const std::string& file, std::string_view text) {
  if (is_special(file)) return write_over(option, file, text);
  const std::string part = part_of(file);
  int reason = 0;
  if (written(part, text)) {
    std::error_code error;
    fs::rename(part, target_of(file), error);  // a link stays one
    if (!error) return {};
    reason = error.value();
  } else {
    reason = errno;
  }
  std::error_code ignored;
  fs::remove(part, ignored);
  return tl::unexpected(cannot_write(ErrorCode::io_failed, option, file, reason));
}

}  // namespace autotune::cli

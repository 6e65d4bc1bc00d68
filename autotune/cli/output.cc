#include "autotune/cli/output.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace autotune::cli {
namespace {

spdlog::level::level_enum level_of(int verbosity) {
  if (verbosity < 0) return spdlog::level::err;
  return verbosity == 0 ? spdlog::level::warn : spdlog::level::info;
}

}  // namespace

Output::Output(const Streams& streams, std::string json, int verbosity)
    : streams_(streams),
      json_(std::move(json)),
      verbosity_(verbosity),
      log_(std::make_shared<spdlog::logger>(
          "autotune", std::make_shared<spdlog::sinks::ostream_sink_st>(streams.err, true))) {
  log_->set_pattern("autotune: %l: %v");
  log_->set_level(level_of(verbosity));
}

void Output::result(std::string_view text) {
  std::ostream& stream = json_ == "-" ? streams_.err : streams_.out;
  stream << text << std::flush;
}

void Output::text(std::string_view text) {
  if (!quiet()) result(text);
}

void Output::warn(const std::string& message) { log_->warn("{}", message); }

void Output::info(const std::string& message) { log_->info("{}", message); }

// Leaves the file as it is: a run that fails later must not have emptied it. Only regular files are
// tried, for opening a pipe and closing it again would be its reader's end.
Expected<void> Output::check_json() const {
  if (json_.empty() || json_ == "-") return {};
  std::error_code ignored;
  const bool there = std::filesystem::exists(json_, ignored);
  const bool folder = std::filesystem::is_directory(json_, ignored);
  if (there && !folder && !std::filesystem::is_regular_file(json_, ignored)) return {};
  errno = 0;
  const bool opened = std::ofstream(json_, std::ios::binary | std::ios::app).is_open();
  const int reason = errno;
  if (!there) std::filesystem::remove(json_, ignored);
  if (opened) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("--json: cannot write '{}': {}", json_, std::strerror(reason)));
}

Expected<void> Output::write_json(const std::string& document) {
  if (json_ == "-") {
    streams_.out << document << std::flush;
    return {};
  }
  errno = 0;
  std::ofstream file(json_, std::ios::binary | std::ios::trunc);
  file << document;
  file.close();
  if (file) return {};
  return fail(ErrorCode::io_failed, fmt::format("--json: cannot write '{}': {}", json_,
                                                errno != 0 ? std::strerror(errno) : "I/O error"));
}

}  // namespace autotune::cli

#include "autotune/cli/output.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <utility>

#include "autotune/cli/target_file.h"

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

Expected<void> Output::check_json() const {
  if (json_.empty() || json_ == "-") return {};
  return check_writable("--json", json_, "{\"schema\":");
}

Expected<void> Output::write_json(const std::string& document) {
  if (json_ != "-") return write_over("--json", json_, document);
  streams_.out << document << std::flush;
  return {};
}

}  // namespace autotune::cli

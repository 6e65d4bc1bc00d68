// Where a command writes: results for a person, warnings, and the JSON document.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace spdlog {
class logger;
}

namespace autotune::cli {

// What main knows about the two streams of the process.
struct Streams {
  std::ostream& out;
  std::ostream& err;
  int columns = 0;  // width of the terminal that `err` is; 0: not a terminal
};

class Output {
 public:
  // `json`: empty (none), "-" (stdout; text then goes to stderr), or a file.
  // `verbosity`: -1 with -q, 0, or more with -v.
  Output(const Streams& streams, std::string json, int verbosity);

  bool quiet() const { return verbosity_ < 0; }
  bool verbose() const { return verbosity_ > 0; }
  int columns() const { return streams_.columns; }
  std::ostream& err() const { return streams_.err; }

  // The result itself, also with -q.
  void result(std::string_view text);
  // What explains the result; silent with -q.
  void text(std::string_view text);
  void warn(const std::string& message);
  void info(const std::string& message);  // with -v

  // Whether --json names a file that can be written, to be known before hours of work: bad_input.
  Expected<void> check_json() const;

  // Writes the document if --json asks for one, the first that a command has. io_failed where the
  // file cannot be written.
  template <class Document>
  Expected<void> json(const Document& document) {
    if (json_.empty() || has_json_) return {};
    has_json_ = true;
    return write_json(to_json(document));
  }

 private:
  Expected<void> write_json(const std::string& document);

  Streams streams_;
  std::string json_;
  bool has_json_ = false;  // written, or tried to
  int verbosity_;
  std::shared_ptr<spdlog::logger> log_;
};

}  // namespace autotune::cli

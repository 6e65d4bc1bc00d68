#include "autotune/cli/status_line.h"

namespace autotune::cli {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

// One column stays free: a full line would wrap on some terminals and could not be redrawn.
int StatusLine::room() const {
  return output_.quiet() || output_.columns() < 2 ? 0 : output_.columns() - 1;
}

void StatusLine::draw(const std::string& text) {
  if (room() == 0) return;
  output_.err() << kClearLine << text.substr(0, static_cast<std::size_t>(room())) << std::flush;
  open_ = true;
}

void StatusLine::clear() {
  if (!open_) return;
  output_.err() << kClearLine << std::flush;
  open_ = false;
}

}  // namespace autotune::cli

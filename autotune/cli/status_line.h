// One line at the bottom of a terminal that is redrawn in place.
#pragma once

#include <string>

#include "autotune/cli/output.h"

namespace autotune::cli {

// Draws nothing where stderr is no terminal, or with -q. Must be cleared before other output.
class StatusLine {
 public:
  explicit StatusLine(Output& output) : output_(output) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Columns that a text may have; 0: nothing is drawn.
  int room() const;
  void draw(const std::string& text);
  void clear();

 private:
  Output& output_;
  bool open_ = false;
};

}  // namespace autotune::cli

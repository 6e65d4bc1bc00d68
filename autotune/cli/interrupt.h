// Ctrl-C as a flag that long commands look at.
#pragma once

#include <signal.h>

#include <atomic>

namespace autotune::cli {

// While one lives, the first SIGINT or SIGTERM sets the flag and the second ends the process. Only
// one may live at a time. Workers end by themselves when the process that started them is gone.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& flag() const;

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
};

}  // namespace autotune::cli

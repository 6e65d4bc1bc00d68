// One worker process and the tuner's end of its channel.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "autotune/types.h"

namespace autotune::worker {

// How a process ended.
struct Exit {
  bool known = true;  // false where the caller's program reaps children itself (SIGCHLD ignored)
  int code = 0;
  int signal = 0;               // 0: it exited by itself
  std::int64_t peak_bytes = 0;  // most resident memory it ever had
};

// "killed by signal 6 (Aborted), peak memory 120 MiB", "exited with code 3, peak memory 20 MiB".
std::string describe(const Exit& exit);

// A file descriptor, closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// Owns the process: it is killed and reaped with its owner.
class Process {
 public:
  // Starts `executable arguments...` with the other end of channel() as descriptor kWorkerFd and
  // nothing else of this process open: input is empty, both outputs go to a buffer in memory,
  // signals are at their defaults, and it leads a process group of its own (Ctrl-C does not reach
  // it). io_failed where it cannot be started.
  static Expected<Process> spawn(const std::filesystem::path& executable,
                                 const std::vector<std::string>& arguments);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  int channel() const { return channel_.get(); }
  // The last 4 KiB of what it printed.
  std::string output() const;

  // Kills it with its group and reaps it. One that ended by itself is only reaped.
  Exit end();

 private:
  Process() = default;
  pid_t pid_ = -1;
  Descriptor channel_;
  Descriptor output_;
};

}  // namespace autotune::worker

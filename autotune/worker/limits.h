// What keeps a worker process inside its bounds, on both sides of the channel.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace autotune::worker {

// Called once by a worker, before its first message: when the tuner's end of `fd` closes, however
// the tuner died, this process is killed, also in the middle of a compilation or a kernel.
void end_with_channel(int fd);

// Called by the tuner on a worker it just started: bounds its address space (RLIMIT_AS). False
// where that cannot be: a sanitizer reserves terabytes of address space, so there the tuner watches
// resident_bytes() instead.
bool limit_memory(pid_t worker, std::int64_t bytes);

// Resident memory of a process in bytes; 0 where it is gone.
std::int64_t resident_bytes(pid_t process);

}  // namespace autotune::worker

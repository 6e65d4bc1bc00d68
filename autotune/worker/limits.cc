#include "autotune/worker/limits.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include "autotune/worker/sanitizers.h"

namespace autotune::worker {

void end_with_channel(int fd) {
  // A thread rather than PR_SET_PDEATHSIG, which fires when the starting *thread* ends.
  std::thread([fd] {
    pollfd watched{fd, POLLRDHUP, 0};
    while (true) {
      const int ready = poll(&watched, 1, -1);
      if (ready < 0 && errno != EINTR) return;
      if ((watched.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0) {
        kill(getpid(), SIGKILL);
      }
    }
  }).detach();
}

bool limit_memory(pid_t worker, std::int64_t bytes) {
  if (kSanitized) return false;
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  return prlimit(worker, RLIMIT_AS, &limit, nullptr) == 0;
}

std::int64_t resident_bytes(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace autotune::worker

#include "autotune/worker/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "autotune/worker/channel.h"

namespace autotune::worker {
namespace {

constexpr off_t kOutputTail = 4096;
// A killed process can stay in the kernel while a driver lets go of a GPU.
constexpr std::chrono::seconds kReapLimit{10};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

Exit decode(int status, const rusage& usage) {
  Exit exit;
  exit.peak_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

// Dup2 in the child must not meet its own target: a source on 0..3 is moved away first.
Descriptor above_worker_fd(Descriptor fd) {
  if (fd.get() > kWorkerFd) return fd;
  return Descriptor(fcntl(fd.get(), F_DUPFD_CLOEXEC, kWorkerFd + 1));
}

}  // namespace

std::string describe(const Exit& exit) {
  if (!exit.known) return "ended";
  const std::string peak = fmt::format(", peak memory {} MiB", exit.peak_bytes >> 20);
  if (exit.signal != 0) {
    return fmt::format("killed by signal {} ({}){}", exit.signal, strsignal(exit.signal), peak);
  }
  return fmt::format("exited with code {}{}", exit.code, peak);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int Descriptor::release() { return std::exchange(fd_, -1); }

Expected<Process> Process::spawn(const std::filesystem::path& executable,
                                 const std::vector<std::string>& arguments) {
  std::array<int, 2> pair{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return fail(ErrorCode::io_failed,
                fmt::format("no socket pair for a worker: {}", strerror(errno)));
  }
  Process process;
  process.channel_ = Descriptor(pair[0]);
  const Descriptor theirs = above_worker_fd(Descriptor(pair[1]));
  process.output_ = above_worker_fd(Descriptor(memfd_create("worker-output", MFD_CLOEXEC)));
  if (theirs.get() < 0 || process.output_.get() < 0) {
    return fail(ErrorCode::io_failed,
                fmt::format("no file descriptor for a worker: {}", strerror(errno)));
  }

  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), process.output_.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), process.output_.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), theirs.get(), kWorkerFd);
  posix_spawn_file_actions_addclosefrom_np(actions.get(), kWorkerFd + 1);
  SpawnAttributes attributes;

  std::vector<std::string> words{executable.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int refused = posix_spawn(&process.pid_, executable.c_str(), actions.get(),
                                  attributes.get(), argv.data(), environ);
  if (refused != 0) {
    process.pid_ = -1;
    return fail(ErrorCode::io_failed, fmt::format("the worker {} cannot be started: {}",
                                                  executable.string(), strerror(refused)));
  }
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      channel_(std::move(other.channel_)),
      output_(std::move(other.output_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    channel_ = std::move(other.channel_);
    output_ = std::move(other.output_);
  }
  return *this;
}

Process::~Process() { end(); }

std::string Process::output() const {
  struct stat about {};
  if (fstat(output_.get(), &about) != 0) return {};
  const off_t from = std::max<off_t>(0, about.st_size - kOutputTail);
  std::string tail(static_cast<std::size_t>(about.st_size - from), '\0');
  const ssize_t got = pread(output_.get(), tail.data(), tail.size(), from);
  tail.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return tail;
}

Exit Process::end() {
  Exit exit;
  exit.known = false;
  if (pid_ < 0) return exit;
  int status = 0;
  rusage usage{};
  pid_t reaped = wait4(pid_, &status, WNOHANG, &usage);
  if (reaped == 0) {
    kill(-pid_, SIGKILL);
    const auto limit = std::chrono::steady_clock::now() + kReapLimit;
    while (reaped == 0 || (reaped < 0 && errno == EINTR)) {
      if (std::chrono::steady_clock::now() > limit) break;
      reaped = wait4(pid_, &status, WNOHANG, &usage);
      if (reaped == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  if (reaped == pid_) exit = decode(status, usage);
  pid_ = -1;
  channel_ = Descriptor();
  return exit;
}

}  // namespace autotune::worker

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "autotune/io/load.h"

namespace autotune::io {
namespace {

constexpr std::int64_t kMaxFileBytes = 16LL << 20;

class Descriptor {
 public:
  // Non-blocking: opening a FIFO must not wait for its writer before we see that it is one.
  explicit Descriptor(const char* path) : fd_(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> too_large(const std::string& name) {
  return fail(ErrorCode::bad_input, fmt::format("{}: larger than {} MiB; is it the right file?",
                                                name, kMaxFileBytes >> 20));
}

}  // namespace

Expected<std::string> read_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  const Descriptor file(name.c_str());
  if (file.get() < 0) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: cannot be opened: {}", name, std::strerror(errno)));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::io_failed, fmt::format("{}: {}", name, std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::bad_input, fmt::format("{}: is a directory; give a file", name));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::bad_input, fmt::format("{}: is not a regular file", name));
  }
  if (status.st_size > kMaxFileBytes) return too_large(name);

  std::string text;
  char chunk[65'536];
  while (true) {
    const ssize_t count = ::read(file.get(), chunk, sizeof chunk);
    if (count == 0) return text;
    if (count < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorCode::io_failed, fmt::format("{}: {}", name, std::strerror(errno)));
    }
    text.append(chunk, static_cast<std::size_t>(count));
    if (static_cast<std::int64_t>(text.size()) > kMaxFileBytes) return too_large(name);
  }
}

}  // namespace autotune::io

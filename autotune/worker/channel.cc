#include "autotune/worker/channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace autotune::worker {
namespace {

constexpr std::size_t kHeader = 4;
constexpr const char* kClosed = "the other side closed the channel";

std::string header_of(std::size_t length) {
  std::string header(kHeader, '\0');
  for (std::size_t i = 0; i < kHeader; ++i) {
    header[i] = static_cast<char>((length >> (8 * i)) & 0xff);
  }
  return header;
}

std::size_t length_in(std::string_view header) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kHeader; ++i) {
    length |= static_cast<std::size_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  return length;
}

tl::unexpected<Error> socket_failed(const char* what) {
  return fail(ErrorCode::failed, fmt::format("{} the worker channel: {}", what, strerror(errno)));
}

// Fills `to`; the count is less than `size` only where the other side closed.
Expected<std::size_t> read_all(int fd, char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = recv(fd, to + done, size - done, 0);
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == ECONNRESET) break;
      return socket_failed("reading from");
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Expected<void> send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return socket_failed("writing to");
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

}  // namespace

bool closed(const Error& error) {
  return error.code == ErrorCode::cancelled && error.message == kClosed;
}

bool readable(int fd) {
  pollfd asked{fd, POLLIN, 0};
  return poll(&asked, 1, 0) > 0;
}

Expected<std::string> read_message(int fd) {
  std::array<char, kHeader> header;
  const auto head = read_all(fd, header.data(), header.size());
  if (!head) return tl::unexpected(head.error());
  if (*head == 0) return fail(ErrorCode::cancelled, kClosed);
  const std::size_t length = *head == kHeader ? length_in({header.data(), kHeader}) : 0;
  if (length > kMaxMessageBytes) {
    return fail(ErrorCode::failed, fmt::format("a message of {} bytes came through the worker "
                                               "channel, at most {} are allowed",
                                               length, kMaxMessageBytes));
  }
  // Grown as the bytes arrive: a wrong length must not reserve what never comes.
  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::string message;
  std::size_t got = 0;
  while (*head == kHeader && got < length) {
    const std::size_t step = std::min(kStep, length - got);
    message.resize(got + step);
    const auto part = read_all(fd, message.data() + got, step);
    if (!part) return tl::unexpected(part.error());
    got += *part;
    if (*part < step) break;
  }
  if (*head < kHeader || got < length) {
    return fail(ErrorCode::failed, "the worker channel was closed inside a message");
  }
  return message;
}

Expected<void> write_message(int fd, std::string_view message) {
  if (message.size() > kMaxMessageBytes) {
    return fail(ErrorCode::failed,
                fmt::format("a message of {} bytes does not go through the worker channel, at most "
                            "{} are allowed",
                            message.size(), kMaxMessageBytes));
  }
  if (auto sent = send_all(fd, header_of(message.size())); !sent) return sent;
  return send_all(fd, message);
}

Inbox::State Inbox::fill(int fd) {
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes_.append(chunk.data(), static_cast<std::size_t>(got));
      if (bytes_.size() >= kHeader && length_in(bytes_) > kMaxMessageBytes) return State::broken;
      continue;
    }
    if (got == 0) return State::closed;
    if (errno == ECONNRESET) return State::unread;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? State::open : State::broken;
  }
}

std::optional<std::string> Inbox::take() {
  if (bytes_.size() < kHeader) return std::nullopt;
  const std::size_t length = length_in(bytes_);
  if (length > kMaxMessageBytes || bytes_.size() - kHeader < length) return std::nullopt;
  std::string message = bytes_.substr(kHeader, length);
  bytes_.erase(0, kHeader + length);
  return message;
}

void Outbox::put(std::string_view message) {
  if (empty()) {
    bytes_.clear();
    sent_ = 0;
  }
  bytes_ += header_of(message.size());
  bytes_ += message;
}

bool Outbox::flush(int fd) {
  while (!empty()) {
    const ssize_t sent =
        send(fd, bytes_.data() + sent_, bytes_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    sent_ += static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace autotune::worker

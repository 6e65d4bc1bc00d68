// Length-prefixed messages over the socket pair between the tuner and a worker: 4 bytes of length,
// little-endian, then that many bytes. Nothing here raises SIGPIPE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune::worker {

// A worker finds its end of the socket pair here.
inline constexpr int kWorkerFd = 3;

// A longer message is an error on either side: a length beyond it is garbage, not a request.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{256} << 20;

// Blocks until a whole message is there. When the other side closed between two messages the error
// is the one that closed() recognises; anything else (closed inside a message, a length beyond the
// bound, a failing socket) is ErrorCode::failed.
Expected<std::string> read_message(int fd);
bool closed(const Error& error);
// Whether something can be read at once: bytes, or that the other side closed.
bool readable(int fd);

// Blocks until all of it is handed over.
Expected<void> write_message(int fd, std::string_view message);

// The tuner's side never blocks on one worker: what has come so far, and what is still to be sent.
class Inbox {
 public:
  // unread: closed before the other side had read all that was sent to it.
  enum class State { open, closed, unread, broken };
  // Takes what the socket holds. Messages that came before the end can still be taken after it.
  State fill(int fd);
  // The next whole message, empty while there is none.
  std::optional<std::string> take();

 private:
  std::string bytes_;
};

class Outbox {
 public:
  void put(std::string_view message);
  bool empty() const { return sent_ == bytes_.size(); }
  bool untouched() const { return sent_ == 0; }  // nothing of it has left yet
  bool flush(int fd);                            // false: the other side is gone

 private:
  std::string bytes_;
  std::size_t sent_ = 0;
};

}  // namespace autotune::worker

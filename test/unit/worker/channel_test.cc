#include "autotune/worker/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "test/support/catch.h"

namespace autotune::worker {
namespace {

struct Pair {
  Pair() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0); }
  ~Pair() {
    shut(0);
    shut(1);
  }
  void shut(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

}  // namespace

TEST_CASE("messages arrive whole and in order") {
  Pair pair;
  const std::string large(3 << 20, 'x');
  int written = 0;
  std::thread writer([&] {
    // Assertions belong to one thread.
    for (const std::string& message : {std::string(), large, std::string("a\0b", 3)}) {
      written += write_message(pair.ends[0], message) ? 1 : 0;
    }
    pair.shut(0);
  });
  CHECK(read_message(pair.ends[1]) == std::string());
  CHECK(read_message(pair.ends[1]) == large);
  CHECK(read_message(pair.ends[1]) == std::string("a\0b", 3));
  const auto end = read_message(pair.ends[1]);
  writer.join();
  CHECK(written == 3);
  REQUIRE_FALSE(end);
  CHECK(closed(end.error()));
}

TEST_CASE("what can be read at once is told without waiting") {
  Pair pair;
  CHECK_FALSE(readable(pair.ends[1]));
  REQUIRE(write_message(pair.ends[0], "a"));
  CHECK(readable(pair.ends[1]));
  CHECK(read_message(pair.ends[1]) == "a");
  CHECK_FALSE(readable(pair.ends[1]));
  pair.shut(0);
  CHECK(readable(pair.ends[1]));  // the end
}

TEST_CASE("an end inside a message is not a clean end") {
  for (const std::string_view part :
       {std::string_view("\x05\x00", 2), std::string_view("\x05\x00\x00\x00pa", 6)}) {
    Pair pair;
    REQUIRE(write(pair.ends[0], part.data(), part.size()) == static_cast<ssize_t>(part.size()));
    pair.shut(0);
    const auto read = read_message(pair.ends[1]);
    REQUIRE_FALSE(read);
    CHECK_FALSE(closed(read.error()));
    CHECK(read.error().code == ErrorCode::failed);
  }
}

TEST_CASE("a length beyond the bound is refused before anything is reserved") {
  Pair pair;
  REQUIRE(write(pair.ends[0], "\xff\xff\xff\x7f", 4) == 4);
  const auto read = read_message(pair.ends[1]);
  REQUIRE_FALSE(read);
  CHECK(read.error().message.find("2147483647") != std::string::npos);

  Inbox inbox;
  REQUIRE(write(pair.ends[0], "\xff\xff\xff\x7f", 4) == 4);
  CHECK(inbox.fill(pair.ends[1]) == Inbox::State::broken);
  CHECK_FALSE(inbox.take());
}

TEST_CASE("writing to a closed channel is an error, not a signal") {
  Pair pair;
  pair.shut(1);
  CHECK_FALSE(write_message(pair.ends[0], "x"));
  Outbox outbox;
  outbox.put("x");
  CHECK_FALSE(outbox.flush(pair.ends[0]));
  CHECK(outbox.untouched());
}

TEST_CASE("an inbox keeps what is not whole yet, and gives what came before the end") {
  Pair pair;
  Inbox inbox;
  CHECK(inbox.fill(pair.ends[1]) == Inbox::State::open);
  REQUIRE(write(pair.ends[0], "\x03\0\0\0on", 6) == 6);
  CHECK(inbox.fill(pair.ends[1]) == Inbox::State::open);
  CHECK_FALSE(inbox.take());
  REQUIRE(write(pair.ends[0], "e\x03\0\0\0two", 8) == 8);
  pair.shut(0);
  CHECK(inbox.fill(pair.ends[1]) == Inbox::State::closed);
  CHECK(inbox.take() == std::string("one"));
  CHECK(inbox.take() == std::string("two"));
  CHECK_FALSE(inbox.take());
}

TEST_CASE("an outbox sends what a full socket refuses later") {
  Pair pair;
  const std::string large(8 << 20, 'y');
  Outbox outbox;
  outbox.put(large);
  CHECK(outbox.flush(pair.ends[0]));
  CHECK_FALSE(outbox.empty());
  CHECK_FALSE(outbox.untouched());
  Inbox inbox;
  std::optional<std::string> message;
  while (!message) {
    REQUIRE(inbox.fill(pair.ends[1]) == Inbox::State::open);
    REQUIRE(outbox.flush(pair.ends[0]));
    message = inbox.take();
  }
  CHECK(*message == large);
  CHECK(outbox.empty());
}

}  // namespace autotune::worker

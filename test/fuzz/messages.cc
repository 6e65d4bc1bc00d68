// What comes out of a worker's socket: whole messages, and the bytes that they are cut from.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "autotune/worker/channel.h"
#include "autotune/worker/messages.h"
#include "test/fuzz/edits.h"

namespace autotune::worker {
namespace {

// What is accepted says the same when it is said again.
template <class Message>
void check(std::optional<Message> (*decode)(const std::string&), const std::string& bytes) {
  const auto message = decode(bytes);
  if (!message) return;
  const std::string said = encode(*message);
  const auto again = decode(said);
  fuzz::require(again && encode(*again) == said);
}

void decode_all(const std::string& bytes) {
  (void)kind_of(bytes);
  check(decode_hello, bytes);
  check(decode_compile_request, bytes);
  check(decode_compile_reply, bytes);
  check(decode_measure_request, bytes);
  check(decode_measure_reply, bytes);
  check(decode_compare_request, bytes);
  check(decode_compare_reply, bytes);
}

const std::vector<std::string>& sound_messages() {
  static const std::vector<std::string> all = [] {
    CompileRequest compile;
    compile.definitions = {{"A", "1"}, {"B", "two"}};
    MeasureReply measured;
    measured.verdict = Verdict{};
    return std::vector<std::string>{encode(Hello{}),          encode(compile),
                                    encode(CompileReply{}),   encode(MeasureRequest{}),
                                    encode(measured),         encode(MeasureReply{}),
                                    encode(CompareRequest{}), encode(CompareReply{})};
  }();
  return all;
}

void receive(std::string_view bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  const bool sent = send(ends[0], bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(bytes.size());
  close(ends[0]);
  Inbox inbox;
  inbox.fill(ends[1]);
  while (const auto message = inbox.take()) {
    fuzz::require(!sent || message->size() <= bytes.size());
    decode_all(*message);
  }
  close(ends[1]);
}

}  // namespace
}  // namespace autotune::worker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune::worker;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto& sound = sound_messages();
  if (data[0] < sound.size()) {
    decode_all(autotune::fuzz::edited(sound[data[0]], rest));
  } else if (data[0] % 2 == 0) {
    decode_all(std::string(rest));
  } else {
    receive(rest);
  }
  return 0;
}

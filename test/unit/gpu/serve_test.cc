// How a worker behaves that cannot work: it says so and ends. (One that can: test/compile.)
#include "autotune/gpu/serve.h"

#include <sys/socket.h>
#include <unistd.h>

#include "autotune/gpu/detect.h"
#include "autotune/worker/channel.h"
#include "test/support/catch.h"

using namespace autotune;

TEST_CASE("a measuring worker without its GPU greets with the reason and ends with 4") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  // No machine has that many, so this holds with and without a GPU.
  CHECK(gpu::serve_measure(ends[1], 9999) == 4);
  const auto message = worker::read_message(ends[0]);
  REQUIRE(message);
  const auto hello = worker::decode_hello(*message);
  REQUIRE(hello);
  CHECK(!hello->ok);
  CHECK(hello->code == ErrorCode::no_gpu);
  CHECK(!hello->message.empty());
  close(ends[0]);
  close(ends[1]);
}

// A compile worker over its socket, as the tuner talks to it.
#include "autotune/gpu/serve.h"

#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "autotune/worker/channel.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

// Runs serve_compile on the other end; closes this end and waits when it goes.
struct Worker {
  int ends[2] = {-1, -1};
  int code = -1;
  std::thread thread;
  Worker() {
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    thread = std::thread([this] { code = gpu::serve_compile(ends[1]); });
  }
  void finish() {
    close(ends[0]);
    thread.join();
    close(ends[1]);
  }
};

}  // namespace

TEST_CASE("a compile worker greets, answers success and failure, and ends with its socket") {
  Worker worker;
  const auto hello = worker::decode_hello(worker::read_message(worker.ends[0]).value());
  REQUIRE(hello);
  CHECK(hello->ok);
  CHECK(hello->what.rfind("nvrtc ", 0) == 0);

  worker::CompileRequest request;
  request.id = 41;
  request.source = "extern \"C\" __global__ void __launch_bounds__(N) k(int* p) { *p = N; }";
  request.entry = std::string("k");
  request.arch = "sm_90a";
  request.definitions = {{"N", "96"}};
  REQUIRE(worker::write_message(worker.ends[0], worker::encode(request)));
  auto reply = worker::decode_compile_reply(worker::read_message(worker.ends[0]).value());
  REQUIRE(reply);
  CHECK(reply->id == 41);
  CHECK(reply->outcome == Outcome::ok);
  CHECK(reply->actual.max_threads == 96);
  CHECK(!reply->cubin.empty());
  CHECK(reply->seconds > 0);

  request.id = 42;
  request.definitions.clear();
  REQUIRE(worker::write_message(worker.ends[0], worker::encode(request)));
  reply = worker::decode_compile_reply(worker::read_message(worker.ends[0]).value());
  REQUIRE(reply);
  CHECK(reply->id == 42);
  CHECK(reply->outcome == Outcome::compile_failed);
  CHECK(reply->cubin.empty());
  CHECK(reply->log.find("N") != std::string::npos);

  worker.finish();
  CHECK(worker.code == 0);
}

TEST_CASE("a compile worker ends with 1 at a message that it does not know") {
  Worker worker;
  (void)worker::read_message(worker.ends[0]);
  REQUIRE(worker::write_message(worker.ends[0], "what?"));
  worker.thread.join();
  CHECK(worker.code == 1);
  close(worker.ends[0]);
  close(worker.ends[1]);
}

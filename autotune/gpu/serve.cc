#include "autotune/gpu/serve.h"

#include <string>

#include "autotune/gpu/measurer.h"
#include "autotune/gpu/nvrtc.h"
#include "autotune/worker/channel.h"

namespace autotune::gpu {
namespace {

constexpr int kDone = 0;
constexpr int kBroken = 1;
constexpr int kRefused = 4;

worker::Hello refusal(const Error& error) { return {false, {}, error.code, error.message}; }

// What is to be done next, where it is not to end with an exit code (>= 0).
constexpr int kGoOn = -1;
constexpr int kAgain = -2;

// Reads messages and hands them to `answer`, until that ends it or there will be no more. While
// none is there `idle` is called, for as long as it says kAgain.
template <class Answer, class Idle>
int serve(int fd, const worker::Hello& hello, Answer answer, Idle idle) {
  if (!worker::write_message(fd, worker::encode(hello))) return kBroken;
  if (!hello.ok) return kRefused;
  while (true) {
    int code = kAgain;
    while (code == kAgain && !worker::readable(fd)) code = idle();
    if (code >= 0) return code;
    auto message = worker::read_message(fd);
    if (!message) return worker::closed(message.error()) ? kDone : kBroken;
    code = answer(*message);
    if (code >= 0) return code;
  }
}

}  // namespace

Expected<worker::CompileReply> compile(const worker::CompileRequest& request) {
  auto compiler = nvrtc();
  if (!compiler) return tl::unexpected(compiler.error());
  CompiledCode code =
      (*compiler)->compile({request.source, request.entry, request.arch, request.definitions});
  worker::CompileReply reply;
  reply.id = request.id;
  reply.outcome = code.ok ? Outcome::ok : Outcome::compile_failed;
  reply.cubin = std::move(code.cubin);
  reply.actual = code.actual;
  reply.log = std::move(code.log);
  reply.seconds = code.seconds;
  return reply;
}

int serve_compile(int fd) {
  auto compiler = nvrtc();
  worker::Hello hello;
  if (compiler) {
    hello.what = (*compiler)->version();
  } else {
    hello = refusal(compiler.error());
  }
  const auto answer = [fd](const std::string& message) {
    const auto request = worker::decode_compile_request(message);
    if (!request) return kBroken;
    auto reply = compile(*request);
    if (!reply) return kRefused;
    return worker::write_message(fd, worker::encode(*reply)) ? kGoOn : kBroken;
  };
  return serve(fd, hello, answer, [] { return kGoOn; });
}

int serve_measure(int fd, int device_index) {
  auto measurer = Measurer::create(device_index);
  worker::Hello hello;
  if (measurer) {
    hello.what = measurer->gpu().driver;
  } else {
    hello = refusal(measurer.error());
  }
  const auto answer = [&](const std::string& message) {
    std::string reply;
    if (const auto measure = worker::decode_measure_request(message)) {
      reply = worker::encode(measurer->measure(*measure));
    } else if (const auto compare = worker::decode_compare_request(message)) {
      reply = worker::encode(measurer->compare(*compare));
    } else {
      return kBroken;
    }
    if (!worker::write_message(fd, reply)) return kBroken;
    // A poisoned context answers nothing any more: the tuner starts a fresh process.
    return measurer->lost() ? kBroken : kGoOn;
  };
  const auto idle = [&] {
    if (measurer->keep_warm()) return kAgain;
    return measurer->lost() ? kBroken : kGoOn;  // nobody's fault who has not asked yet
  };
  return serve(fd, hello, answer, idle);
}

}  // namespace autotune::gpu

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

// Reads messages and hands them to `answer` until it returns an exit code (>= 0) or they end. While
// none is there, `idle` is called until it returns false.
template <class Answer, class Idle>
int serve(int fd, const worker::Hello& hello, Answer answer, Idle idle) {
  if (!worker::write_message(fd, worker::encode(hello))) return kBroken;
  if (!hello.ok) return kRefused;
  while (true) {
    while (!worker::readable(fd) && idle()) {
    }
    auto message = worker::read_message(fd);
    if (!message) return worker::closed(message.error()) ? kDone : kBroken;
    if (const int code = answer(*message); code >= 0) return code;
  }
}

constexpr int kGoOn = -1;

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
  return serve(fd, hello, answer, [] { return false; });
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
  return serve(fd, hello, answer, [&] { return measurer->keep_warm(); });
}

}  // namespace autotune::gpu

// The two kinds of worker process: what the executable's hidden subcommands run. Each greets with a
// Hello, answers one request after another, and ends when the tuner closes the socket.
#pragma once

#include "autotune/worker/messages.h"

namespace autotune::gpu {

// One request as one reply: a source that does not compile is Outcome::compile_failed. Errors:
// no_compiler.
Expected<worker::CompileReply> compile(const worker::CompileRequest& request);

// Both return the process' exit code: 0 when the socket closed, 4 where the environment refused
// (the Hello said so), 1 after a broken message or a fault that poisoned the context.
int serve_compile(int fd);
int serve_measure(int fd, int device_index);

}  // namespace autotune::gpu

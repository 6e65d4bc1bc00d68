// `autotune worker`: the hidden command that the tuner starts as its worker processes.
#include <signal.h>

#include <limits>
#include <string>

#include "autotune/cli/command.h"
#include "autotune/cli/request.h"
#include "autotune/gpu/serve.h"
#include "autotune/worker/channel.h"
#include "autotune/worker/limits.h"

namespace autotune::cli {
namespace {

Expected<int> run(const Options& options, Output&) {
  const bool measures = options.role == "measure";
  if (!measures && options.role != "compile") {
    return fail(ErrorCode::bad_input,
                "worker: '" + options.role + "' is not one of compile, measure");
  }
  const auto index = read_count("--device", options.device.empty() ? "0" : options.device, 0,
                                std::numeric_limits<int>::max());
  if (!index) return tl::unexpected(index.error());

  // A terminal's Ctrl-C goes to the whole process group. The tuner decides what it means; a worker
  // goes when its socket closes.
  signal(SIGINT, SIG_IGN);
  // Also where the tuner is killed while this process compiles or waits for a kernel.
  worker::end_with_channel(worker::kWorkerFd);
  return measures ? gpu::serve_measure(worker::kWorkerFd, static_cast<int>(*index))
                  : gpu::serve_compile(worker::kWorkerFd);
}

}  // namespace

const Command kWorkerCommand = {
    "worker", "Run one worker process", "  autotune worker measure --device 0", kWorker, run, true,
};

}  // namespace autotune::cli

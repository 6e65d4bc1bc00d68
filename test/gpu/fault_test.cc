// A kernel that faults ends its worker, is reported as such, and the next config is unaffected.
#include <chrono>
#include <optional>
#include <string>

#include "autotune/worker/pool.h"
#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

worker::MeasureReply wait_for(worker::MeasureWorker& worker,
                              const worker::MeasureRequest& request) {
  worker.submit(request);
  std::optional<worker::MeasureReply> reply;
  for (int tries = 0; tries < 600 && !reply; ++tries) {
    auto polled = worker.poll(std::chrono::milliseconds(100));
    if (!polled) FAIL(polled.error().message);
    reply = std::move(*polled);
  }
  REQUIRE(reply);
  return *reply;
}

}  // namespace

TEST_CASE("faulting, trapping and hanging kernels do not reach the next config") {
  gpu::Measurer* here = test::measurer();
  if (here == nullptr) return;
  const DeviceSpec& device = here->gpu().spec;
  const Problem problem = test::gemm(512, 512, 512, DType::bf16, Layout::tn);
  const auto good = test::default_request(problem, device);
  const Config config = test::default_config(problem, device).config;
  const std::string entry(config.kernel->entry());

  worker::WorkerOptions options;
  const auto executable = worker::find_executable({});
  if (!executable) FAIL(executable.error().message);
  options.executable = *executable;
  options.time_limit = std::chrono::seconds(20);
  auto worker = worker::MeasureWorker::start(options, 0);
  if (!worker) FAIL(worker.error().message);
  struct Bad {
    const char* body;
    Outcome outcome;
  };
  for (const Bad& bad :
       {Bad{"*(volatile int*)16 = 1;", Outcome::faulted},                                 // 700
        Bad{"__assertfail(\"false\", \"file\", 1, \"function\", 1);", Outcome::faulted},  // 710
        Bad{"*(volatile int*)&args.bytes[1] = 1; *(volatile long long*)"
            "(*(char**)args.bytes + 1) = 1;",
            Outcome::faulted},                              // 716
        Bad{"asm volatile(\"trap;\");", Outcome::faulted},  // 715, 719
        Bad{"while (true) asm volatile(\"nanosleep.u32 1000;\");", Outcome::timed_out}}) {
    const std::string source =
        "extern \"C\" __device__ void __assertfail(const char*, const char*, "
        "unsigned, const char*, decltype(sizeof(0)));\n"
        "struct Args { char bytes[512]; };\nextern \"C\" __global__ void " +
        entry + "(Args args) {" + bad.body + "}";
    const auto code = (*gpu::nvrtc())->compile({source, entry, device.limits.arch, {}});
    INFO(bad.body << "\n" << code.log);
    REQUIRE(code.ok);
    auto request = good;
    request.cubin = code.cubin;
    CHECK(wait_for(*worker, request).outcome == bad.outcome);
    const auto after = wait_for(*worker, good);
    INFO(after.log);
    CHECK(after.outcome == Outcome::ok);
  }
}

// Compile workers and the measuring worker, as the tuner sees them. Workers are processes: one that
// crashes, hangs or eats its memory is killed and replaced, and its request is answered with that
// outcome.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/worker/messages.h"

namespace autotune::worker {

struct WorkerOptions {
  std::filesystem::path executable;              // see find_executable()
  std::int64_t memory_limit_bytes = 4LL << 30;   // of one compile worker; 0: none
  std::chrono::milliseconds time_limit{60'000};  // of one request
};

// The `autotune` executable that workers run: `option` where not empty, else $AUTOTUNE_WORKER, else
// this process' own executable where that is it, else the one beside the library, else from PATH.
Expected<std::filesystem::path> find_executable(const std::filesystem::path& option);

// N compile workers, each started when there is work for it. Requests are answered in any order.
class CompilePool {
 public:
  // `jobs` <= 0: one per core that this process may use.
  static Expected<CompilePool> start(const WorkerOptions& options, int jobs);
  CompilePool(CompilePool&&) noexcept;
  CompilePool& operator=(CompilePool&&) noexcept;
  ~CompilePool();  // ends the workers

  void submit(CompileRequest request);
  std::size_t pending() const;  // submitted and not yet answered
  // Replies that are there; waits up to `timeout` for the first one. no_compiler where a worker
  // reports that NVRTC cannot be loaded; failed where workers end before they are ready.
  Expected<std::vector<CompileReply>> poll(std::chrono::milliseconds timeout);
  // The version that the workers compile with, "nvrtc 13.0"; starts one worker to ask.
  Expected<std::string> compiler();
  int jobs() const;
  void cancel();  // forgets what is queued and ends the workers that are at work

 private:
  struct Impl;
  explicit CompilePool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One measuring worker on one GPU; it keeps its context, inputs and reference from config to
// config, and is replaced after a fault.
class MeasureWorker {
 public:
  // `device_index` as the driver counts. Returns before the worker is ready.
  static Expected<MeasureWorker> start(const WorkerOptions& options, int device_index);
  MeasureWorker(MeasureWorker&&) noexcept;
  MeasureWorker& operator=(MeasureWorker&&) noexcept;
  ~MeasureWorker();

  // The driver's version, "13.0"; waits until a first worker is ready. Errors as poll().
  Expected<std::string> driver();

  // One request at a time: submit, then poll until the reply is there (empty before). A lost worker
  // answers with faulted or timed_out. Errors: no_gpu where the worker reports that it cannot use
  // the device; failed where workers end before they are ready.
  void submit(const MeasureRequest& request);
  Expected<std::optional<MeasureReply>> poll(std::chrono::milliseconds timeout);
  Expected<CompareReply> compare(const CompareRequest& request);  // waits
  void cancel();  // forgets the request at work, and its worker with it

 private:
  struct Impl;
  explicit MeasureWorker(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::worker

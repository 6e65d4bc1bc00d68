#include "autotune/tune/workers.h"

#include <utility>

namespace autotune::tune {

Expected<Workers> start_workers(const std::filesystem::path& executable, int jobs, int device_index,
                                std::chrono::milliseconds measuring) {
  auto found = worker::find_executable(executable);
  if (!found) return tl::unexpected(found.error());
  worker::WorkerOptions options;
  options.executable = std::move(*found);
  auto pool = worker::CompilePool::start(options, jobs);
  if (!pool) return tl::unexpected(pool.error());
  options.time_limit += measuring;
  auto measurer = worker::MeasureWorker::start(options, device_index);
  if (!measurer) return tl::unexpected(measurer.error());
  return Workers{std::move(*pool), std::move(*measurer)};
}

}  // namespace autotune::tune

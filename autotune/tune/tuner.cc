#include "autotune/tune/tuner.h"

#include <utility>

#include "autotune/tune/session.h"
#include "autotune/worker/pool.h"

namespace autotune::tune {

struct Tuner::Impl {
  DeviceSpec device;
  TuneOptions options;
  worker::CompilePool pool;
  worker::MeasureWorker measurer;
  CodeMemory memory;
};

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::Tuner(Tuner&&) noexcept = default;
Tuner& Tuner::operator=(Tuner&&) noexcept = default;
Tuner::~Tuner() = default;

Expected<Tuner> Tuner::create(const DeviceSpec& device, int device_index,
                              const TuneOptions& options) {
  auto executable = worker::find_executable(options.worker);
  if (!executable) return tl::unexpected(executable.error());
  worker::WorkerOptions workers;
  workers.executable = std::move(*executable);
  auto pool = worker::CompilePool::start(workers, options.jobs);
  if (!pool) return tl::unexpected(pool.error());
  auto measurer = worker::MeasureWorker::start(workers, device_index);
  if (!measurer) return tl::unexpected(measurer.error());
  return Tuner(std::make_unique<Impl>(
      Impl{device, options, std::move(*pool), std::move(*measurer), CodeMemory()}));
}

Expected<TuneResult> Tuner::tune(const Problem& problem, cache::Store* store, Observer& observer,
                                 const std::atomic<bool>& stop) {
  const Clock::time_point start = Clock::now();
  const auto plan =
      search::make_plan(problem, impl_->device, impl_->options.space, impl_->options.limits);
  if (!plan) return tl::unexpected(plan.error());
  observer.planned(*plan);
  // Names the compiler in every key, so it comes before the cache is asked.
  auto compiler = impl_->pool.compiler();
  if (!compiler) return tl::unexpected(compiler.error());
  Session session({impl_->device, impl_->options, impl_->pool, impl_->measurer, impl_->memory,
                   observer, stop, start, std::move(*compiler)},
                  *plan, store);
  return session.run();
}

}  // namespace autotune::tune

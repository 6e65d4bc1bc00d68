#include "autotune/tune/tuner.h"

#include <utility>

#include "autotune/tune/session.h"
#include "autotune/tune/workers.h"

namespace autotune::tune {

struct Tuner::Impl {
  DeviceSpec device;
  TuneOptions options;
  Workers workers;
  CodeMemory memory;
};

Tuner::Tuner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tuner::Tuner(Tuner&&) noexcept = default;
Tuner& Tuner::operator=(Tuner&&) noexcept = default;
Tuner::~Tuner() = default;

Expected<Tuner> Tuner::create(const DeviceSpec& device, int device_index,
                              const TuneOptions& options) {
  auto workers = start_workers(options.worker, options.jobs, device_index);
  if (!workers) return tl::unexpected(workers.error());
  return Tuner(std::make_unique<Impl>(Impl{device, options, *std::move(workers), CodeMemory()}));
}

Expected<TuneResult> Tuner::tune(const Problem& problem, cache::Store* store, Observer& observer,
                                 const std::atomic<bool>& stop) {
  const Clock::time_point start = Clock::now();
  const auto plan =
      search::make_plan(problem, impl_->device, impl_->options.space, impl_->options.limits);
  if (!plan) return tl::unexpected(plan.error());
  observer.planned(*plan);
  // Names the compiler in every key, so it comes before the cache is asked.
  auto compiler = impl_->workers.pool.compiler();
  if (!compiler) return tl::unexpected(compiler.error());
  Session session({impl_->device, impl_->options, impl_->workers.pool, impl_->workers.measurer,
                   impl_->memory, observer, stop, start, std::move(*compiler)},
                  *plan, store);
  return session.run();
}

}  // namespace autotune::tune

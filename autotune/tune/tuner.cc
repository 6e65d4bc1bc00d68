#include "autotune/tune/tuner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "autotune/io/builtin.h"
#include "autotune/lookup/guess.h"
#include "autotune/tune/session.h"
#include "autotune/tune/stages.h"
#include "autotune/tune/workers.h"
#include "kernels/problem.h"
#include "kernels/stages.h"

namespace autotune::tune {

namespace {

// Adds what won for this problem, or for those most like it.
void add_winners_nearby(const Problem& problem, const cache::Store* store, SessionTools& tools) {
  lookup::Sources sources;
  sources.store = store;
  sources.tuned = io::tuned_entries();
  lookup::Recollection recollection;
  const std::string key = problem_key(problem);
  for (const lookup::Guess& guess : lookup::nearest_winners(problem, tools.device, sources,
                                                            recollection, tools.options.limits)) {
    const bool same = guess.where == lookup::Where::here && problem_key(guess.problem) == key;
    if (same && !tools.former) tools.former = guess.config;
    tools.nearby.push_back(guess.config);
  }
}

}  // namespace

std::string TuneOptions::limited_by() const {
  std::vector<const char*> names;
  if (limits.max_sms > 0) names.push_back("--max-sms");
  if (limits.max_smem > 0) names.push_back("--max-smem (or AUTOTUNE_MAX_SMEM)");
  if (!limits.excludes.empty()) names.push_back("--exclude");
  if (!space.built_in) names.push_back("--space");
  return fmt::format("{}", fmt::join(names, ", "));
}

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
  const bool joint = stage_count(problem) > 1;
  TuneOptions options = impl_->options;
  if (joint) {  // whose finalists are timed together behind that
    options.budget_seconds =
        without_final(options.budget_seconds) / static_cast<double>(stage_count(problem));
  }

  std::vector<TuneResult> stages;
  std::string compiler;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Problem stage = stage_of(problem, i);
    const Clock::time_point begun = i == 0 ? start : Clock::now();
    const search::Space* space = io::space_for(stage.family, &impl_->options.space);
    if (space == nullptr) {
      return fail(ErrorCode::bad_input, "no search space is built in for " + stage.family);
    }
    options.space = *space;
    const auto plan = search::make_plan(stage, impl_->device, options.space, options.limits);
    if (!plan) return tl::unexpected(plan.error());
    observer.planned(*plan);
    // Names the compiler in every key, so it comes before the cache is asked.
    auto found = impl_->workers.pool.compiler();
    if (!found) return tl::unexpected(found.error());
    compiler = *found;
    SessionTools tools{impl_->device,
                       options,
                       impl_->workers.pool,
                       impl_->workers.measurer,
                       impl_->memory,
                       observer,
                       stop,
                       begun,
                       *std::move(found),
                       {},
                       {}};
    if (!options.from_scratch) add_winners_nearby(stage, store, tools);
    Session session(std::move(tools), *plan, store);
    auto result = session.run();
    if (!result || !joint) return result;
    stages.push_back(*std::move(result));
  }
  return join_stages({impl_->device,
                      impl_->options,
                      impl_->workers.pool,
                      impl_->workers.measurer,
                      impl_->memory,
                      observer,
                      stop,
                      start,
                      std::move(compiler),
                      {},
                      {}},
                     problem, stages, store);
}

}  // namespace autotune::tune

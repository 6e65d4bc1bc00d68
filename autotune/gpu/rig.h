// One GPU with the operands of one problem and the kernels that were loaded lately: what single
// measurements and comparisons are made with.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/gpu/launch.h"
#include "autotune/gpu/nvml.h"
#include "autotune/gpu/operands.h"
#include "autotune/gpu/timer.h"
#include "autotune/gpu/warmth.h"
#include "autotune/gpu/workbench.h"
#include "autotune/worker/messages.h"

namespace autotune::gpu {

// What became of a request that did not get as far as a time.
struct Failure {
  Outcome outcome = Outcome::launch_failed;
  std::optional<Verdict> verdict;
  std::string log;
};
template <class T>
using Result = tl::expected<T, Failure>;

// The samples' figures.
void summarise(std::span<const double> samples, Measurement& out);

// Its methods may be called once prepare_operands() did well.
class Rig {
 public:
  using Clock = Warmth::Clock;

  static Expected<std::unique_ptr<Rig>> create(int device_index);

  Workbench& bench() { return bench_; }
  Timer& timer() { return *timer_; }
  Operands& operands() { return *operands_; }
  ClockState clocks() { return nvml_.read(); }

  Failure failure(const Error& error) const;

  // Of another problem or seed than the last: makes inputs and reference anew; where it is timed
  // cold, at several places (in a loop they stay in the L2).
  Result<void> prepare_operands(const Problem& problem, std::uint64_t seed);
  Result<Config> config(const std::string& text) const;
  // The workspace moves when it grows: those that are to run together ask for theirs before any
  // takes its address.
  Result<void> reserve(const Config& config, int max_sms);
  // The config's launches on the current operands, after the driver has agreed to them.
  Result<Subject> subject(const worker::Contender& contender, int max_sms);
  // At the first place.
  Result<Correctness> check(const Subject& subject);
  Result<Subject> in_mode(Subject subject, TimingMode mode);
  // As Timer has it, on a GPU that is awake.
  Result<std::vector<double>> sample(std::span<const Turn> order);
  Result<void> wake_up();  // where it has idled; not of what is timed
  // Some milliseconds of a subject whose launches take `us` each, mostly waited for in sleep: the
  // compilers need the processor.
  Result<void> keep_busy(const Subject& subject, double us);
  // Of what these two launched.
  double lacking_warmth_s() const { return warmth_.lacking_s(Clock::now()); }

 private:
  struct KeptKernel {
    std::string cubin;
    std::string entry;
    std::shared_ptr<const LoadedKernel> kernel;
  };

  explicit Rig(Workbench made) : bench_(std::move(made)), nvml_(bench_.gpu().uuid) {}
  Result<std::shared_ptr<const LoadedKernel>> kernel(const std::string& cubin,
                                                     const std::string& entry);
  Result<void> make_operands(const Problem& checked, std::uint64_t seed);

  Workbench bench_;
  std::optional<Timer> timer_;  // refers to `bench_` where it lies
  Nvml nvml_;
  std::optional<Operands> operands_;
  std::list<KeptKernel> kernels_;  // most recently used first
  Clock::time_point last_busy_{};
  Warmth warmth_;
};

}  // namespace autotune::gpu

#include "autotune/gpu/rig.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "autotune/gpu/statistics.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

constexpr std::size_t kKeptKernels = 48;
// A GPU that idles lowers its clock, and takes some milliseconds of work to raise it again.
constexpr std::chrono::milliseconds kIdle{20};
constexpr std::chrono::milliseconds kWakeUp{25};
// A request waits for no longer than launches that keep the GPU busy, or for one.
constexpr double kBusyUs = 4000;
constexpr double kSleptShare = 0.8;  // without a flush launches take less

tl::unexpected<Failure> refuse(std::string log) {
  return tl::unexpected(Failure{Outcome::launch_failed, std::nullopt, std::move(log)});
}

}  // namespace

void summarise(std::span<const double> samples, Measurement& out) {
  out.median_us = median(samples);
  out.relative_error = out.median_us > 0 ? median_error(samples) / out.median_us : 0;
  out.samples = static_cast<int>(samples.size());
}

Expected<std::unique_ptr<Rig>> Rig::create(int device_index) {
  auto bench = Workbench::create(device_index);
  if (!bench) return tl::unexpected(bench.error());
  std::unique_ptr<Rig> rig(new Rig(std::move(*bench)));
  auto timer = Timer::create(rig->bench_);
  if (!timer) return tl::unexpected(timer.error());
  rig->timer_.emplace(std::move(*timer));
  return rig;
}

Failure Rig::failure(const Error& error) const {
  return {bench_.lost() ? Outcome::faulted : Outcome::launch_failed, std::nullopt, error.message};
}

Result<void> Rig::prepare_operands(const Problem& problem, std::uint64_t seed) {
  auto sound = checked(problem);
  if (!sound) return refuse(sound.error().message);
  if (!operands_ || !operands_->serve(*sound, seed)) {
    if (auto made = make_operands(*sound, seed); !made) return made;
  }
  if (sound->mode == TimingMode::cold) operands_->spread(bench_);
  return {};
}

Result<void> Rig::make_operands(const Problem& problem, std::uint64_t seed) {
  operands_.reset();
  const std::int64_t needed = Operands::bytes_for(problem);
  const std::int64_t free = bench_.free_bytes();
  if (needed > free) {
    return tl::unexpected(Failure{Outcome::launch_failed, Verdict{Rule::memory, needed, free},
                                  "the operands do not fit in the GPU's free memory"});
  }
  auto made = Operands::create(bench_, problem, seed);
  if (!made) return tl::unexpected(failure(made.error()));
  operands_.emplace(std::move(*made));
  return {};
}

Result<std::shared_ptr<const LoadedKernel>> Rig::kernel(const std::string& cubin,
                                                        const std::string& entry) {
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const KeptKernel& kept) {
    return kept.cubin == cubin && kept.entry == entry;
  });
  if (found != kernels_.end()) {
    kernels_.splice(kernels_.begin(), kernels_, found);
    return kernels_.front().kernel;
  }
  auto loaded = LoadedKernel::load(cubin, entry);
  if (!loaded) return tl::unexpected(failure(loaded.error()));
  kernels_.push_front({cubin, entry, std::make_shared<LoadedKernel>(std::move(*loaded))});
  if (kernels_.size() > kKeptKernels) kernels_.pop_back();
  return kernels_.front().kernel;
}

Result<Config> Rig::config(const std::string& text) const {
  const std::string& name = operands_->problem().family;
  const Family* family = find_family(name);
  if (family == nullptr) return refuse(fmt::format("unknown family '{}'", name));
  auto parsed = parse_config(text, *family);
  if (!parsed) return refuse(parsed.error().message);
  return *parsed;
}

Result<void> Rig::reserve(const Config& config, int max_sms) {
  const std::int64_t bytes =
      workspace_of(config, operands_->problem(), bench_.gpu().spec, max_sms).bytes;
  if (auto reserved = operands_->reserve_workspace(bench_, bytes); !reserved) {
    Failure lack = failure(reserved.error());
    lack.verdict = Verdict{Rule::memory, bytes, bench_.free_bytes()};
    return tl::unexpected(std::move(lack));
  }
  return {};
}

Result<Subject> Rig::subject(const worker::Contender& contender, int max_sms) {
  const Problem& problem = operands_->problem();
  const DeviceSpec& device = bench_.gpu().spec;
  const auto whole = config(contender.config);
  if (!whole) return tl::unexpected(whole.error());
  if (auto reserved = reserve(*whole, max_sms); !reserved) {
    return tl::unexpected(reserved.error());
  }
  const StageWorkspace workspace = workspace_of(*whole, problem, device, max_sms);
  struct Stage {
    std::shared_ptr<const LoadedKernel> kernel;
    std::vector<LaunchPlan> plans;  // one for each place
  };
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(*whole, i);
    const std::string& cubin = i == 0 ? contender.cubin : contender.second_cubin;
    auto loaded = kernel(cubin, std::string(own.kernel->entry()));
    if (!loaded) return tl::unexpected(loaded.error());
    Stage& stage = stages.emplace_back(Stage{*loaded, {}});
    const DeviceSpec here = (*loaded)->placed(device);
    for (std::size_t place = 0; place < operands_->places(); ++place) {
      stage.plans.push_back(
          stage_launch(*whole, problem, i, here, operands_->pointers(place), workspace, max_sms));
    }
    auto verdict = stage.kernel->prepare(stage.plans.front());  // the others differ in pointers
    if (!verdict) return tl::unexpected(failure(verdict.error()));
    if (*verdict) {
      return tl::unexpected(
          Failure{Outcome::launch_failed, **verdict, describe(**verdict, device)});
    }
  }
  return Subject{[stages = std::move(stages)](void* stream, std::size_t place) {
                   Expected<void> state;
                   for (const Stage& stage : stages) {
                     if (state) state = stage.kernel->launch(stage.plans[place], stream);
                   }
                   return state;
                 },
                 [this](void*, std::size_t place) { return operands_->restore(bench_, place); },
                 nullptr, 1};
}

Result<Correctness> Rig::check(const Subject& subject) {
  auto state = operands_->poison(bench_);
  if (state) state = subject.launch(bench_.stream(), 0);
  // Also after a refused launch: whether the context is lost shows when it is waited for.
  auto finished = bench_.synchronize();
  if (state) state = finished;
  if (!state) return tl::unexpected(failure(state.error()));
  auto result = operands_->verify(bench_);
  if (!result) return tl::unexpected(failure(result.error()));
  return *result;
}

Result<Subject> Rig::in_mode(Subject subject, TimingMode mode) {
  if (mode == TimingMode::cold) return subject;
  auto hot = timer_->make_hot(subject);
  if (!hot) return tl::unexpected(failure(hot.error()));
  return std::move(*hot);
}

Result<void> Rig::wake_up() {
  const Clock::time_point start = Clock::now();
  if (start - last_busy_ < kIdle) return {};
  while (Clock::now() - start < kWakeUp) {
    Expected<void> state;
    for (int i = 0; i < 16 && state; ++i) state = bench_.flush();
    if (state) state = bench_.synchronize();
    if (!state) return tl::unexpected(failure(state.error()));
  }
  last_busy_ = Clock::now();
  return {};
}

Result<std::vector<double>> Rig::sample(std::span<const Turn> order) {
  if (auto awake = wake_up(); !awake) return tl::unexpected(awake.error());
  const Clock::time_point start = Clock::now();
  auto times = timer_->sample(order);
  if (!times) return tl::unexpected(failure(times.error()));
  last_busy_ = Clock::now();
  double us = 0;
  for (std::size_t i = 0; i < times->size(); ++i) us += (*times)[i] * order[i].subject->runs;
  warmth_.note(start, last_busy_,
               us / static_cast<double>(std::max<std::size_t>(1, times->size())));
  return std::move(*times);
}

Result<void> Rig::keep_busy(const Subject& subject, double us) {
  const double sample_us = us * subject.runs;
  const int samples = std::max(1, static_cast<int>(kBusyUs / sample_us));
  const std::chrono::duration<double, std::micro> taken(samples * sample_us);
  const Clock::time_point start = Clock::now();
  Expected<void> state;
  for (int i = 0; i < samples && state; ++i) state = timer_->launch({&subject});
  if (state) std::this_thread::sleep_until(start + taken * kSleptShare);
  auto finished = bench_.synchronize();
  if (state) state = finished;
  if (!state) return tl::unexpected(failure(state.error()));
  // Who slept for longer has left the GPU idle.
  last_busy_ = std::min(Clock::now(), start + std::chrono::duration_cast<Clock::duration>(taken));
  warmth_.note(start, last_busy_, sample_us);
  return {};
}

}  // namespace autotune::gpu

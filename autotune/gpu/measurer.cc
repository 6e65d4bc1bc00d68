#include "autotune/gpu/measurer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <span>
#include <thread>
#include <vector>

#include "autotune/gpu/baseline.h"
#include "autotune/gpu/launch.h"
#include "autotune/gpu/nvml.h"
#include "autotune/gpu/operands.h"
#include "autotune/gpu/rounds.h"
#include "autotune/gpu/statistics.h"
#include "autotune/gpu/timer.h"
#include "kernels/stages.h"

namespace autotune::gpu {
namespace {

constexpr std::size_t kKeptKernels = 48;
constexpr std::chrono::milliseconds kCoolDown{300};
// A GPU that idles lowers its clock, and takes some milliseconds of work to raise it again.
constexpr std::chrono::milliseconds kIdle{20};
constexpr std::chrono::milliseconds kWarmUp{25};
// Behind each burst of a rested comparison: so much longer than it took.
constexpr int kRestPerWork = 2;
constexpr std::chrono::milliseconds kLongestRest{100};
// Launches of a comparison in a row, at least a round.
constexpr std::size_t kBurst = 16;
using Clock = std::chrono::steady_clock;

// What became of a request that did not get as far as a time.
struct Failure {
  Outcome outcome = Outcome::launch_failed;
  std::optional<Verdict> verdict;
  std::string log;
};
template <class T>
using Result = tl::expected<T, Failure>;

tl::unexpected<Failure> refuse(std::string log) {
  return tl::unexpected(Failure{Outcome::launch_failed, std::nullopt, std::move(log)});
}

StopRule rule_of(const worker::MeasureOptions& options) {
  StopRule rule;
  rule.relative_error = options.relative_error;
  rule.min_samples = options.min_samples;
  rule.max_samples = options.max_samples;
  rule.max_us = options.max_ms * 1000;
  rule.behind_us = options.behind_us;
  return rule;
}

// The samples' figures.
void summarise(std::span<const double> samples, Measurement& out) {
  out.median_us = median(samples);
  out.relative_error = out.median_us > 0 ? median_error(samples) / out.median_us : 0;
  out.samples = static_cast<int>(samples.size());
}

// A config's figures, and the median of what was sampled in between.
struct Timed {
  Measurement measurement;
  double reference_us = 0;
};

// A comparison on its way.
struct Field {
  TimingMode mode;
  std::optional<Baseline> baseline;
  std::vector<Subject> subjects;   // those that are timed
  std::vector<std::size_t> sides;  // which of the reply each of them is
  worker::CompareReply reply;

  void note(const Correctness& found) {
    reply.sides.back().measurement.result_error = found.error;
    reply.sides.back().measurement.max_error_ratio = found.max_ratio;
  }
};

struct KeptKernel {
  std::string cubin;
  std::string entry;
  LoadedKernel kernel;
};

}  // namespace

struct Measurer::Impl {
  Workbench bench;
  std::optional<Timer> timer;  // refers to `bench` where it lies
  Nvml nvml;
  std::optional<Operands> operands;
  std::list<KeptKernel> kernels;  // most recently used first
  Clock::time_point last_busy{};
  Clock::time_point rested_at{};  // from the last burst of a comparison

  explicit Impl(Workbench made) : bench(std::move(made)), nvml(bench.gpu().uuid) {}

  Failure failure(const Error& error) const {
    return {bench.lost() ? Outcome::faulted : Outcome::launch_failed, std::nullopt, error.message};
  }
  Result<void> prepare_operands(const Problem& problem, std::uint64_t seed);
  Result<const LoadedKernel*> kernel(const std::string& cubin, const std::string& entry);
  Result<Config> config(const std::string& text) const;
  Result<void> reserve(const Config& config, int max_sms);
  Result<Subject> subject(const worker::Contender& contender, int max_sms);
  Result<Correctness> check(const Subject& subject);
  Result<void> warm_up();
  Result<std::vector<double>> sample(std::span<const Subject* const> order);
  Result<Subject> in_mode(Subject subject, TimingMode mode);
  Result<Timed> time(const Subject& subject, const StopRule& rule, const Subject* reference);
  Result<Timed> measure(const worker::MeasureRequest& request);
  Result<void> add_contenders(const worker::CompareRequest& request, Field& field);
  Result<void> add_baseline(Field& field);
  Result<void> time(const worker::CompareRequest& request, Field& field);
  Result<worker::CompareReply> compare(const worker::CompareRequest& request);
};

Result<void> Measurer::Impl::prepare_operands(const Problem& problem, std::uint64_t seed) {
  auto sound = checked(problem);
  if (!sound) return refuse(sound.error().message);
  if (operands && operands->serve(*sound, seed)) return {};
  operands.reset();
  const std::int64_t needed = Operands::bytes_for(*sound);
  const std::int64_t free = bench.free_bytes();
  if (needed > free) {
    return tl::unexpected(Failure{Outcome::launch_failed, Verdict{Rule::memory, needed, free},
                                  "the operands do not fit in the GPU's free memory"});
  }
  auto made = Operands::create(bench, *sound, seed);
  if (!made) return tl::unexpected(failure(made.error()));
  operands.emplace(std::move(*made));
  return {};
}

Result<const LoadedKernel*> Measurer::Impl::kernel(const std::string& cubin,
                                                   const std::string& entry) {
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KeptKernel& kept) {
    return kept.cubin == cubin && kept.entry == entry;
  });
  if (found != kernels.end()) {
    kernels.splice(kernels.begin(), kernels, found);
    return &kernels.front().kernel;
  }
  auto loaded = LoadedKernel::load(cubin, entry);
  if (!loaded) return tl::unexpected(failure(loaded.error()));
  kernels.push_front({cubin, entry, std::move(*loaded)});
  if (kernels.size() > kKeptKernels) kernels.pop_back();
  return &kernels.front().kernel;
}

Result<Config> Measurer::Impl::config(const std::string& text) const {
  const std::string& name = operands->problem().family;
  const Family* family = find_family(name);
  if (family == nullptr) return refuse(fmt::format("unknown family '{}'", name));
  auto parsed = parse_config(text, *family);
  if (!parsed) return refuse(parsed.error().message);
  return *parsed;
}

Result<void> Measurer::Impl::reserve(const Config& config, int max_sms) {
  const std::int64_t bytes =
      workspace_of(config, operands->problem(), bench.gpu().spec, max_sms).bytes;
  if (auto reserved = operands->reserve_workspace(bench, bytes); !reserved) {
    Failure lack = failure(reserved.error());
    lack.verdict = Verdict{Rule::memory, bytes, bench.free_bytes()};
    return tl::unexpected(std::move(lack));
  }
  return {};
}

// The config's launches on the current operands, after the driver has agreed to them.
Result<Subject> Measurer::Impl::subject(const worker::Contender& contender, int max_sms) {
  const Problem& problem = operands->problem();
  const DeviceSpec& device = bench.gpu().spec;
  const auto whole = config(contender.config);
  if (!whole) return tl::unexpected(whole.error());
  if (auto reserved = reserve(*whole, max_sms); !reserved) {
    return tl::unexpected(reserved.error());
  }
  std::vector<std::pair<const LoadedKernel*, LaunchPlan>> launches;
  for (std::size_t i = 0; i < stage_count(problem); ++i) {
    const Config own = stage_of(*whole, i);
    const std::string& cubin = i == 0 ? contender.cubin : contender.second_cubin;
    auto loaded = kernel(cubin, std::string(own.kernel->entry()));
    if (!loaded) return tl::unexpected(loaded.error());
    const LaunchPlan plan = stage_launch(*whole, problem, i, device, operands->pointers(), max_sms);
    auto verdict = (*loaded)->prepare(plan);
    if (!verdict) return tl::unexpected(failure(verdict.error()));
    if (*verdict) {
      return tl::unexpected(
          Failure{Outcome::launch_failed, **verdict, describe(**verdict, device)});
    }
    launches.emplace_back(*loaded, plan);
  }
  return Subject{[launches = std::move(launches)](void* stream) {
                   Expected<void> state;
                   for (const auto& [loaded, plan] : launches) {
                     if (state) state = loaded->launch(plan, stream);
                   }
                   return state;
                 },
                 [this](void*) { return operands->restore(bench); }, nullptr, 1};
}

Result<Correctness> Measurer::Impl::check(const Subject& subject) {
  auto state = operands->poison(bench);
  if (state) state = subject.launch(bench.stream());
  // Also after a refused launch: whether the context is lost shows when it is waited for.
  auto finished = bench.synchronize();
  if (state) state = finished;
  if (!state) return tl::unexpected(failure(state.error()));
  auto result = operands->verify(bench);
  if (!result) return tl::unexpected(failure(result.error()));
  return *result;
}

Result<Subject> Measurer::Impl::in_mode(Subject subject, TimingMode mode) {
  if (mode == TimingMode::cold) return subject;
  auto hot = timer->make_hot(subject);
  if (!hot) return tl::unexpected(failure(hot.error()));
  return std::move(*hot);
}

Result<void> Measurer::Impl::warm_up() {
  const Clock::time_point start = Clock::now();
  if (start - last_busy < kIdle) return {};
  while (Clock::now() - start < kWarmUp) {
    Expected<void> state;
    for (int i = 0; i < 16 && state; ++i) state = bench.flush();
    if (state) state = bench.synchronize();
    if (!state) return tl::unexpected(failure(state.error()));
  }
  return {};
}

Result<std::vector<double>> Measurer::Impl::sample(std::span<const Subject* const> order) {
  if (auto warm = warm_up(); !warm) return tl::unexpected(warm.error());
  auto times = timer->sample(order);
  if (!times) return tl::unexpected(failure(times.error()));
  last_busy = Clock::now();
  return std::move(*times);
}

// Samples until the rule is content, each batch between two samples of the reference. A throttled
// round is taken once more after a pause.
Result<Timed> Measurer::Impl::time(const Subject& subject, const StopRule& rule,
                                   const Subject* reference) {
  Timed timed;
  Measurement& out = timed.measurement;
  for (int round = 0; round < 2; ++round) {
    const ClockState before = nvml.read();
    std::vector<double> samples;
    std::vector<double> in_between;
    StopRule::Decision decision = StopRule::Decision::more;
    while (decision == StopRule::Decision::more) {
      const int count = std::min(rule.batch(samples), static_cast<int>(Timer::kMostAtOnce) - 2);
      std::vector<const Subject*> order(static_cast<std::size_t>(count), &subject);
      if (reference != nullptr) {
        order.insert(order.begin(), reference);
        order.push_back(reference);
      }
      auto times = sample(order);
      if (!times) return tl::unexpected(times.error());
      for (std::size_t i = 0; i < order.size(); ++i) {
        (order[i] == reference ? in_between : samples).push_back((*times)[i]);
      }
      decision = rule.decide(samples);
    }
    const ClockState after = nvml.read();
    summarise(samples, out);
    timed.reference_us = median(in_between);
    out.raced = decision == StopRule::Decision::behind;
    out.sm_mhz = after.sm_mhz;
    out.throttled = before.throttled || after.throttled;
    if (!out.throttled) break;
    if (round == 0) std::this_thread::sleep_for(kCoolDown);
  }
  return timed;
}

Result<Timed> Measurer::Impl::measure(const worker::MeasureRequest& request) {
  const worker::MeasureOptions& options = request.options;
  if (auto ready = prepare_operands(request.problem, options.seed); !ready) {
    return tl::unexpected(ready.error());
  }
  const auto reference_subject = [&] {
    return subject({request.reference, request.reference_cubin, {}}, options.max_sms);
  };
  // The workspace moves when it grows, so the reference has asked for its own before.
  const bool has_reference = !request.reference.empty() && reference_subject();
  auto cold = subject({request.config, request.cubin, {}}, options.max_sms);
  if (!cold) return tl::unexpected(cold.error());
  auto result = check(*cold);
  if (!result) return tl::unexpected(result.error());
  if (!result->ok) {
    return tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, result->what});
  }
  auto timed = in_mode(std::move(*cold), request.problem.mode);
  if (!timed) return tl::unexpected(timed.error());
  std::optional<Subject> reference;
  if (has_reference) {
    auto made = reference_subject();
    auto ready = made ? in_mode(std::move(*made), request.problem.mode) : std::move(made);
    if (!ready) return tl::unexpected(ready.error());
    reference.emplace(std::move(*ready));
  }
  auto figures = time(*timed, rule_of(options), reference ? &*reference : nullptr);
  if (!figures) return figures;
  figures->measurement.result_error = result->error;
  figures->measurement.max_error_ratio = result->max_ratio;
  return figures;
}

// A contender that does not run or is wrong stays behind; only a lost GPU ends the comparison.
Result<void> Measurer::Impl::add_contenders(const worker::CompareRequest& request, Field& field) {
  const int max_sms = request.options.max_sms;
  // The workspace moves when it grows, so all have asked for theirs before any takes its address.
  for (const worker::Contender& each : request.contenders) {
    if (const auto parsed = config(each.config)) static_cast<void>(reserve(*parsed, max_sms));
  }
  for (const worker::Contender& each : request.contenders) {
    worker::Side& side = field.reply.sides.emplace_back();
    const auto stay_behind = [&](const Failure& failed) {
      side.outcome = failed.outcome;
      side.verdict = failed.verdict;
      side.log = failed.log;
      return bench.lost() ? Result<void>(tl::unexpected(failed)) : Result<void>();
    };
    auto made = subject(each, max_sms);
    auto found = made ? check(*made) : Result<Correctness>(tl::unexpected(made.error()));
    if (found && !found->ok) {
      found = tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, found->what});
    }
    if (found) {
      field.note(*found);
      made = in_mode(std::move(*made), field.mode);
    }
    if (!found || !made) {
      if (auto state = stay_behind(found ? made.error() : found.error()); !state) return state;
      continue;
    }
    field.subjects.push_back(std::move(*made));
    field.sides.push_back(field.reply.sides.size() - 1);
  }
  return {};
}

Result<void> Measurer::Impl::add_baseline(Field& field) {
  if (auto warm = warm_up(); !warm) return warm;
  auto chosen = Baseline::choose(bench, *timer, *operands, field.mode);
  if (!chosen) return tl::unexpected(failure(chosen.error()));
  field.baseline.emplace(std::move(*chosen));
  field.reply.baseline = field.baseline->name();
  field.reply.baseline_candidates = field.baseline->candidates();
  field.reply.sides.emplace_back();
  field.note(field.baseline->result());
  auto made = in_mode(Subject{field.baseline->launch(),
                              [this](void*) { return operands->restore(bench); }, nullptr, 1},
                      field.mode);
  if (!made) return tl::unexpected(made.error());
  field.subjects.push_back(std::move(*made));
  field.sides.push_back(field.reply.sides.size() - 1);
  return {};
}

Result<void> Measurer::Impl::time(const worker::CompareRequest& request, Field& field) {
  const std::size_t count = field.subjects.size();
  Rounds rounds(count,
                {static_cast<std::size_t>(std::max(request.rounds, 1)),
                 static_cast<std::size_t>(std::max({request.most_rounds, request.rounds, 1})),
                 request.sustain_s});
  const ClockState before = nvml.read();
  const Clock::time_point start = Clock::now();
  while (true) {
    const std::vector<std::size_t> order = rounds.next(kBurst, Clock::now() - start);
    if (order.empty()) break;
    if (request.rested) std::this_thread::sleep_until(rested_at);
    const Clock::time_point burst = Clock::now();
    for (std::size_t done = 0; done < order.size(); done += Timer::kMostAtOnce) {
      const std::vector<std::size_t> now(
          order.begin() + static_cast<std::ptrdiff_t>(done),
          order.begin() +
              static_cast<std::ptrdiff_t>(std::min(done + Timer::kMostAtOnce, order.size())));
      std::vector<const Subject*> launches;
      for (const std::size_t side : now) launches.push_back(&field.subjects[side]);
      auto times = sample(launches);
      if (!times) return tl::unexpected(times.error());
      rounds.take(now, *times);
    }
    rested_at =
        last_busy + std::min<Clock::duration>(kRestPerWork * (last_busy - burst), kLongestRest);
  }
  const ClockState after = nvml.read();
  for (std::size_t i = 0; i < count; ++i) {
    worker::Side& side = field.reply.sides[field.sides[i]];
    summarise(rounds.samples(i), side.measurement);
    side.measurement.sm_mhz = after.sm_mhz;
    side.measurement.throttled = before.throttled || after.throttled;
    const Rounds::Ratio ratio = rounds.ratio(i);
    side.ratio = ratio.median;
    side.ratio_lo = ratio.interval.lo;
    side.ratio_hi = ratio.interval.hi;
  }
  return {};
}

Result<worker::CompareReply> Measurer::Impl::compare(const worker::CompareRequest& request) {
  if (auto ready = prepare_operands(request.problem, request.options.seed); !ready) {
    return tl::unexpected(ready.error());
  }
  Field field{request.sustain_s > 0 ? TimingMode::hot : request.problem.mode, {}, {}, {}, {}};
  auto state = add_contenders(request, field);
  if (state && request.baseline) state = add_baseline(field);
  if (state && !field.subjects.empty()) state = time(request, field);
  if (!state) return tl::unexpected(state.error());
  return std::move(field.reply);
}

Measurer::Measurer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Measurer::Measurer(Measurer&&) noexcept = default;
Measurer& Measurer::operator=(Measurer&&) noexcept = default;
Measurer::~Measurer() = default;

Expected<Measurer> Measurer::create(int device_index) {
  auto bench = Workbench::create(device_index);
  if (!bench) return tl::unexpected(bench.error());
  auto impl = std::make_unique<Impl>(std::move(*bench));
  auto timer = Timer::create(impl->bench);
  if (!timer) return tl::unexpected(timer.error());
  impl->timer.emplace(std::move(*timer));
  return Measurer(std::move(impl));
}

const DetectedGpu& Measurer::gpu() const { return impl_->bench.gpu(); }
bool Measurer::lost() const { return impl_->bench.lost(); }

worker::MeasureReply Measurer::measure(const worker::MeasureRequest& request) {
  worker::MeasureReply reply;
  auto timed = impl_->measure(request);
  if (timed) {
    reply.measurement = timed->measurement;
    reply.reference_us = timed->reference_us;
  } else {
    reply.outcome = timed.error().outcome;
    reply.verdict = timed.error().verdict;
    reply.log = std::move(timed.error().log);
  }
  reply.id = request.id;
  return reply;
}

worker::CompareReply Measurer::compare(const worker::CompareRequest& request) {
  worker::CompareReply reply;
  auto compared = impl_->compare(request);
  if (compared) {
    reply = std::move(*compared);
  } else {
    reply.outcome = compared.error().outcome;
    reply.log = std::move(compared.error().log);
  }
  reply.id = request.id;
  return reply;
}

}  // namespace autotune::gpu

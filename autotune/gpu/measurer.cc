#include "autotune/gpu/measurer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "autotune/gpu/contest.h"
#include "autotune/gpu/rig.h"
#include "autotune/gpu/statistics.h"

namespace autotune::gpu {
namespace {

constexpr std::chrono::milliseconds kCoolDown{300};
// Behind a request, the GPU is kept warm for so long.
constexpr std::chrono::seconds kKeepsWarm{1};

StopRule rule_of(const worker::MeasureOptions& options) {
  StopRule rule;
  rule.relative_error = options.relative_error;
  rule.min_samples = options.min_samples;
  rule.max_samples = options.max_samples;
  rule.max_us = options.max_ms * 1000;
  rule.behind_us = options.behind_us;
  return rule;
}

// A config's figures, and the median of what was sampled in between.
struct Timed {
  Measurement measurement;
  double reference_us = 0;
};

}  // namespace

struct Measurer::Impl {
  std::unique_ptr<Rig> rig;
  // On the operands that there are, and what a launch of it takes; 0: not known yet.
  std::optional<Subject> keeper;
  double keeper_us = 0;
  Rig::Clock::time_point answered{};

  void let_go() {  // of what the next request may move
    keeper.reset();
    keeper_us = 0;
  }
  Result<void> warm_up(const Subject& subject);
  Result<Timed> time(const Subject& subject, const StopRule& rule, const Subject* reference);
  Result<Timed> measure(const worker::MeasureRequest& request);
  Result<worker::CompareReply> compare(const worker::CompareRequest& request);
};

// Until the clocks are those of a GPU that stays busy, where launches are long.
Result<void> Measurer::Impl::warm_up(const Subject& subject) {
  while (rig->lacking_warmth_s() > 0) {
    const auto times = rig->sample(std::array<Turn, 1>{{{&subject}}});
    if (!times) return tl::unexpected(times.error());
    if (times->front() * subject.runs < kLongUs) break;
  }
  return {};
}

// Samples until the rule is content, the operands' places in turn, each batch between two samples
// of the reference, which always is at one place: it is to tell of clocks alone. A throttled round
// is taken once more after a pause.
Result<Timed> Measurer::Impl::time(const Subject& subject, const StopRule& rule,
                                   const Subject* reference) {
  Timed timed;
  Measurement& out = timed.measurement;
  for (int round = 0; round < 2; ++round) {
    auto warm = warm_up(reference != nullptr ? *reference : subject);
    if (!warm) return tl::unexpected(warm.error());
    const ClockState before = rig->clocks();
    std::vector<double> samples;
    std::vector<double> in_between;
    std::size_t launched = 0;
    StopRule::Decision decision = StopRule::Decision::more;
    while (decision == StopRule::Decision::more) {
      const int count = std::min(rule.batch(samples), static_cast<int>(Timer::kMostAtOnce) - 2);
      std::vector<Turn> order;
      if (reference != nullptr) order.push_back({reference});
      for (int i = 0; i < count; ++i) {
        order.push_back({&subject, launched++ % rig->operands().places()});
      }
      if (reference != nullptr) order.push_back({reference});
      auto times = rig->sample(order);
      if (!times) return tl::unexpected(times.error());
      for (std::size_t i = 0; i < order.size(); ++i) {
        (order[i].subject == reference ? in_between : samples).push_back((*times)[i]);
      }
      decision = rule.decide(samples);
    }
    const ClockState after = rig->clocks();
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
  if (auto ready = rig->prepare_operands(request.problem, options.seed); !ready) {
    return tl::unexpected(ready.error());
  }
  const auto reference_subject = [&] {
    return rig->subject({request.reference, request.reference_cubin, {}}, options.max_sms);
  };
  // The workspace moves when it grows, so the reference has asked for its own before.
  const bool has_reference = !request.reference.empty() && reference_subject();
  auto cold = rig->subject({request.config, request.cubin, {}}, options.max_sms);
  if (!cold) return tl::unexpected(cold.error());
  auto result = rig->check(*cold);
  if (!result) return tl::unexpected(result.error());
  if (!result->ok) {
    return tl::unexpected(Failure{Outcome::wrong_result, std::nullopt, result->what});
  }
  auto timed = rig->in_mode(std::move(*cold), request.problem.mode);
  if (!timed) return tl::unexpected(timed.error());
  std::optional<Subject> reference;
  if (has_reference) {
    auto made = reference_subject();
    auto ready = made ? rig->in_mode(std::move(*made), request.problem.mode) : std::move(made);
    if (ready) {
      reference.emplace(std::move(*ready));
    } else if (rig->bench().lost()) {
      return tl::unexpected(ready.error());
    }
  }
  auto figures = time(*timed, rule_of(options), reference ? &*reference : nullptr);
  if (!figures) return figures;
  keeper = reference ? *reference : *timed;
  figures->measurement.result_error = result->error;
  figures->measurement.max_error_ratio = result->max_ratio;
  return figures;
}

Result<worker::CompareReply> Measurer::Impl::compare(const worker::CompareRequest& request) {
  if (auto ready = rig->prepare_operands(request.problem, request.options.seed); !ready) {
    return tl::unexpected(ready.error());
  }
  Contest contest(*rig, request);
  auto reply = contest.run();
  keeper = contest.first();
  return reply;
}

Measurer::Measurer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Measurer::Measurer(Measurer&&) noexcept = default;
Measurer& Measurer::operator=(Measurer&&) noexcept = default;
Measurer::~Measurer() = default;

Expected<Measurer> Measurer::create(int device_index) {
  auto rig = Rig::create(device_index);
  if (!rig) return tl::unexpected(rig.error());
  return Measurer(std::make_unique<Impl>(Impl{std::move(*rig)}));
}

const DetectedGpu& Measurer::gpu() const { return impl_->rig->bench().gpu(); }
bool Measurer::lost() const { return impl_->rig->bench().lost(); }

bool Measurer::keep_warm() {
  const bool warm = impl_->keeper && impl_->rig->lacking_warmth_s() == 0;
  if (!warm || Rig::Clock::now() - impl_->answered > kKeepsWarm) return false;
  if (impl_->keeper_us > 0) {
    return impl_->rig->keep_busy(*impl_->keeper, impl_->keeper_us).has_value();
  }
  const auto times = impl_->rig->sample(std::array<Turn, 1>{{{&*impl_->keeper}}});
  if (!times) return false;
  impl_->keeper_us = times->front();
  return impl_->keeper_us > 0;
}

worker::MeasureReply Measurer::measure(const worker::MeasureRequest& request) {
  worker::MeasureReply reply;
  impl_->let_go();
  auto timed = impl_->measure(request);
  impl_->answered = Rig::Clock::now();
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
  impl_->let_go();
  auto compared = impl_->compare(request);
  impl_->answered = Rig::Clock::now();
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

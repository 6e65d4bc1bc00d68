#include "autotune/tune/sweep.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <unordered_set>
#include <utility>

#include "autotune/tune/code.h"
#include "autotune/tune/workers.h"
#include "kernels/problem.h"
#include "search/spread.h"

namespace autotune::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{50};
// The reference's time does not matter to the last digit where a config takes so many times longer.
constexpr double kSlow = 3;
constexpr int kSlowPairs = 2;
constexpr std::size_t kReferences = 8;  // of the drawn configs are tried as the reference
// So many configs per compile worker are asked for ahead.
constexpr std::size_t kAhead = 4;

// Of the config beside the reference: without that it has no time either.
Outcome outcome_of(const worker::CompareReply& reply) {
  if (reply.outcome != Outcome::ok) return reply.outcome;
  const Outcome reference = reply.sides.front().outcome;
  return reference != Outcome::ok ? reference : reply.sides.back().outcome;
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

struct Sweeper::Impl {
  DeviceSpec device;
  SweepOptions options;
  Workers workers;
  CodeMemory memory;
};

namespace {

struct Tools {
  const DeviceSpec& device;
  const SweepOptions& options;
  worker::MeasureWorker& measurer;
  CodeSource& code;
  std::size_t ahead;  // configs that are asked for at once
  const Sweeper::Deadline& deadline;
  const std::atomic<bool>& stop;
  const SweepSink& sink;
};

class Run {
 public:
  Run(const Tools& tools, const search::Plan& plan, io::Sweep sweep)
      : tools_(tools),
        plan_(plan),
        traits_(traits_of(plan.problem)),
        order_(search::draw_spread(plan, tools.options.trials, tools.options.seed)),
        sweep_(std::move(sweep)) {
    for (const io::SweepRow& row : sweep_.rows) count(row);
  }

  // False where the deadline or the stop came first.
  Expected<bool> run() {
    const auto found = find_reference();
    if (!found || !*found) return found;
    // What is to be done with this run's first row: the header has its reference by now.
    if (auto told = tools_.sink(sweep_, nullptr, progress()); !told) {
      return tl::unexpected(told.error());
    }
    std::size_t next = 0;
    while (true) {
      if (over()) return false;
      for (; next < order_.size() && tools_.code.pending() + ready_.size() < tools_.ahead; ++next) {
        want(order_[next]);
      }
      if (next == order_.size() && tools_.code.pending() == 0 && ready_.empty()) {
        while (!tools_.code.saved()) tools_.code.save(1);
        return true;
      }
      if (auto done = collect(); !done) return tl::unexpected(done.error());
      if (ready_.empty()) continue;
      const Ready item = std::move(ready_.front());
      ready_.pop_front();
      if (auto done = measure(item); !done) return tl::unexpected(done.error());
      tools_.code.save(1);
    }
  }

 private:
  struct Ready {
    std::size_t candidate;
    CodePtr code;
  };

  bool over() const { return tools_.stop || (tools_.deadline && Clock::now() >= *tools_.deadline); }

  SweepProgress progress() const { return {seen_.size(), order_.size(), failed_, best_}; }

  void count(const io::SweepRow& row) {
    seen_.insert(row.config);
    if (row.outcome != Outcome::ok) {
      ++failed_;
    } else if (best_ == 0 || row.ratio < best_) {
      best_ = row.ratio;
    }
  }

  Expected<void> tell(io::SweepRow row) {
    count(row);
    sweep_.rows.push_back(row);
    return tools_.sink(sweep_, &sweep_.rows.back(), progress());
  }

  Expected<CodePtr> code_of(const Config& config) {
    return tools_.code.get(config, traits_, source_hash(config, traits_, tools_.device),
                           [this] { return over(); });
  }

  // An earlier run's, else the first of the drawn configs that runs and is right.
  Expected<bool> find_reference() {
    std::vector<Config> tries;
    if (sweep_.reference.kernel != nullptr) {
      tries.push_back(sweep_.reference);
    } else {
      for (std::size_t i = 0; i < std::min(kReferences, order_.size()); ++i) {
        tries.push_back(plan_.survivors[order_[i]].config);
      }
    }
    std::string why;
    for (const Config& config : tries) {
      auto code = code_of(config);
      if (!code && code.error().code == ErrorCode::cancelled) return false;
      if (!code) return tl::unexpected(code.error());
      why = (*code)->log;
      if ((*code)->outcome != Outcome::ok) continue;
      sweep_.reference = config;
      reference_text_ = to_string(config);
      reference_code_ = std::move(*code);
      const auto reply = compare(config, *reference_code_, 1);
      if (!reply) return tl::unexpected(reply.error());
      if (outcome_of(*reply) == Outcome::ok) {
        reference_predicted_ = predicted(config);
        return true;
      }
      why = reply->outcome == Outcome::ok ? reply->sides.back().log : reply->log;
    }
    return fail(ErrorCode::failed,
                fmt::format("no config works as the reference for {}; the last said: {}",
                            describe(plan_.problem), why));
  }

  double predicted(const Config& config) const {
    const auto found =
        std::find_if(plan_.survivors.begin(), plan_.survivors.end(),
                     [&](const search::Candidate& each) { return each.config == config; });
    return found == plan_.survivors.end() ? plan_.survivors.front().predicted_us
                                          : found->predicted_us;
  }

  // The reference first; what became of the config, if it was not timed, stands in its side.
  Expected<worker::CompareReply> compare(const Config& config, const Code& code, int rounds) {
    worker::CompareRequest request;
    request.id = ++requests_;
    request.problem = plan_.problem;
    request.contenders = {{reference_text_, reference_code_->image, {}},
                          {to_string(config), code.image, {}}};
    request.rounds = rounds;
    request.options.seed = tools_.options.seed;
    request.options.max_sms = tools_.options.limits.max_sms;
    return tools_.measurer.compare(request);
  }

  void want(std::size_t candidate) {
    const Config& config = plan_.survivors[candidate].config;
    if (seen_.contains(config)) return;
    tools_.code.want(candidate, config, traits_, source_hash(config, traits_, tools_.device));
  }

  Expected<void> collect() {
    auto arrived = tools_.code.poll(ready_.empty() ? kTick : std::chrono::milliseconds(0));
    if (!arrived) return tl::unexpected(arrived.error());
    for (auto& [candidate, code] : *arrived) {
      const auto outcome = judged(plan_.survivors[candidate], *code);
      if (!outcome) return tl::unexpected(outcome.error());
      if (*outcome == Outcome::ok) {
        ready_.push_back({candidate, std::move(code)});
        continue;
      }
      io::SweepRow row;
      row.config = plan_.survivors[candidate].config;
      row.outcome = *outcome;
      if (auto told = tell(row); !told) return told;
    }
    return {};
  }

  // What a tuning run would say of it before measuring.
  Expected<Outcome> judged(const search::Candidate& candidate, const Code& code) const {
    if (code.outcome != Outcome::ok) return code.outcome;
    const auto verdict = judge(candidate.config, candidate.resources, code.actual, tools_.device);
    if (!verdict) return tl::unexpected(verdict.error());
    if (*verdict) return Outcome::over_budget;
    if (tools_.options.limits.keep_slow || candidate.config == sweep_.reference) return Outcome::ok;
    if (code.actual.serialised) return Outcome::serialised;
    return code.actual.spills() ? Outcome::spilled : Outcome::ok;
  }

  Expected<void> measure(const Ready& item) {
    const search::Candidate& candidate = plan_.survivors[item.candidate];
    const bool slow = candidate.predicted_us > kSlow * reference_predicted_;
    const auto reply =
        compare(candidate.config, *item.code,
                slow ? std::min(kSlowPairs, tools_.options.pairs) : tools_.options.pairs);
    if (!reply) return tl::unexpected(reply.error());
    io::SweepRow row;
    row.config = candidate.config;
    row.outcome = outcome_of(*reply);
    if (row.outcome == Outcome::ok) {
      row.ratio = reply->sides.back().ratio;
      row.reference_us = reply->sides.front().measurement.median_us;
    }
    return tell(row);
  }

  const Tools tools_;
  const search::Plan& plan_;
  KernelTraits traits_;
  std::vector<std::size_t> order_;
  io::Sweep sweep_;
  std::unordered_set<Config, ConfigHash> seen_;
  std::deque<Ready> ready_;
  std::string reference_text_;
  CodePtr reference_code_;
  double reference_predicted_ = 0;
  std::size_t failed_ = 0;
  double best_ = 0;
  std::uint64_t requests_ = 0;
};

}  // namespace

Sweeper::Sweeper(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Sweeper::Sweeper(Sweeper&&) noexcept = default;
Sweeper& Sweeper::operator=(Sweeper&&) noexcept = default;
Sweeper::~Sweeper() = default;

Expected<Sweeper> Sweeper::create(const DeviceSpec& device, int device_index,
                                  const SweepOptions& options) {
  auto workers = start_workers(options.worker, options.jobs, device_index);
  if (!workers) return tl::unexpected(workers.error());
  return Sweeper(std::make_unique<Impl>(Impl{device, options, *std::move(workers), CodeMemory()}));
}

Expected<bool> Sweeper::sweep(const Problem& problem, const std::optional<io::Sweep>& before,
                              cache::Store* store, const Deadline& deadline,
                              const std::atomic<bool>& stop, const SweepSink& sink) {
  const auto plan =
      search::make_plan(problem, impl_->device, impl_->options.space, impl_->options.limits);
  if (!plan) return tl::unexpected(plan.error());
  auto compiler = impl_->workers.pool.compiler();
  if (!compiler) return tl::unexpected(compiler.error());
  auto driver = impl_->workers.measurer.driver();
  if (!driver) return tl::unexpected(driver.error());
  io::Sweep sweep;
  if (before) {
    sweep = *before;
  } else {
    sweep.device = impl_->device.name;
    sweep.problem = problem;
    sweep.space = impl_->options.space.origin;
  }
  sweep.runs.push_back({today(), *driver, *compiler, impl_->options.seed});
  // A cache that cannot keep a cubin costs nothing here but time in the next run.
  CodeSource code(impl_->workers.pool, impl_->memory, store, impl_->device, *compiler,
                  [](const Error&) {});
  const std::size_t ahead =
      kAhead * static_cast<std::size_t>(std::max(1, impl_->workers.pool.jobs()));
  Run run(
      {impl_->device, impl_->options, impl_->workers.measurer, code, ahead, deadline, stop, sink},
      *plan, std::move(sweep));
  return run.run();
}

}  // namespace autotune::tune

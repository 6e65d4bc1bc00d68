#include "autotune/tune/session.h"

#include <algorithm>
#include <utility>

#include "autotune/tune/run_info.h"
#include "kernels/problem.h"

namespace autotune::tune {
namespace {

using std::chrono::milliseconds;

// Share of a budget that is left for timing the finalists again, and its bound.
constexpr double kFinalShare = 0.15;
constexpr double kFinalSeconds = 2.5;
// A config is clearly behind where clocks alone do not explain it.
constexpr double kClocks = 1.1;
// What is being measured when the budget ends may still finish, for so long.
constexpr double kGraceSeconds = 0.5;
// While a config is measured, compiled ones are looked for this often.
constexpr milliseconds kTick{5};
constexpr milliseconds kIdleTick{50};

}  // namespace

double without_final(double budget_seconds) {
  return budget_seconds - std::min(budget_seconds * kFinalShare, kFinalSeconds);
}

Session::Session(SessionTools tools, const search::Plan& plan, cache::Store* store)
    : tools_(std::move(tools)),
      plan_(plan),
      traits_(traits_of(plan.problem)),
      ledger_(store, plan.problem, tools_.device,
              run_fingerprint(tools_.device, tools_.options.limits), tools_.compiler,
              [this](const std::string& message) { tools_.observer.warning(message); }),
      code_(tools_.pool, tools_.memory, store, tools_.device, tools_.compiler,
            [this](const Error& error) { ledger_.write_failed(error); }),
      begun_(plan.survivors.size()),
      former_(tools_.former) {
  const auto& before = ledger_.winner();
  const Family* family = find_family(plan_.problem.family);
  if (!before || !family) return;
  const auto config = parse_config(before->trial.key.config, *family);
  if (config) former_ = *config;
}

Session::~Session() { tools_.measurer.cancel(); }

bool Session::time_is_up() const {
  const double budget = tools_.options.budget_seconds;
  return budget > 0 && elapsed_s() > without_final(budget);
}

// A budget never ends a run that has no answer yet, nor before the default config and a former
// winner had their chance.
bool Session::enough() const {
  return default_done_ && (former_done_ || on_top_ == 0) && !good_.empty();
}

std::size_t Session::outstanding() const {
  return compiling_.size() + ready_.size() + (measuring_ ? 1 : 0);
}

Expected<TuneResult> Session::run() {
  if (auto searched = search(); !searched) return tl::unexpected(searched.error());
  return conclude();
}

Expected<void> Session::search() {
  auto strategy = search::make_strategy(tools_.options.strategy, plan_,
                                        {tools_.options.seed, tools_.options.patience,
                                         [this](std::size_t i) { return had_code(i); }});
  if (!strategy) return tl::unexpected(strategy.error());
  while (true) {
    if (tools_.stop) return {};
    const bool ending = last_call();
    if (!ending) {
      if (auto refilled = refill(**strategy); !refilled) return refilled;
      if (outstanding() == 0) return {};
    } else if (!measuring_ || elapsed_s() > tools_.options.budget_seconds + kGraceSeconds) {
      return {};
    }
    if (!measuring_ && !ending) submit_next();
    const milliseconds tick = measuring_ ? kTick : kIdleTick;
    if (measuring_) {
      code_.save(1);  // the GPU is at work meanwhile
      if (auto seen = collect_measurement(tick); !seen) return seen;
    }
    if (auto seen = collect_code(measuring_ || !code_.compiling() ? milliseconds(0) : tick);
        !seen) {
      return seen;
    }
  }
}

// Keeps every compile worker busy with a little to spare, and asks no earlier: the more a strategy
// has seen, the better it chooses. One that has nothing to say while something is at work is asked
// again when more is known.
Expected<void> Session::refill(search::Strategy& strategy) {
  const auto jobs = static_cast<std::size_t>(tools_.pool.jobs());
  const std::int64_t most = tools_.options.max_trials;
  if (history_.size() == silent_at_ && outstanding() > 0) return {};
  // Trials that the cache answers leave nothing at work, so the strategy is asked on.
  while (outstanding() <= jobs && !tools_.stop) {
    std::size_t limit = 2 * jobs - std::min(2 * jobs, outstanding());
    if (most > 0)
      limit = std::min<std::size_t>(limit, std::max<std::int64_t>(0, most - handed_out_));
    if (limit == 0) return {};
    if (!known_begun_) limit = 1;
    const std::vector<std::size_t> batch = strategy.next(history_, limit);
    if (batch.empty()) {
      silent_at_ = history_.size();
      return {};
    }
    for (const std::size_t candidate : batch) {
      if (!begun_[candidate]) ++handed_out_;
      if (auto started = begin(candidate); !started) return started;
    }
    if (auto started = begin_known_winners(); !started) return started;
  }
  return {};
}

// Once, behind the first config that the strategy wants: a winner from an earlier run meets
// whatever this run finds, and so do those of problems like this one, as far as trials are left for
// them.
Expected<void> Session::begin_known_winners() {
  if (std::exchange(known_begun_, true)) return {};
  if (former_ && ledger_.winner()) {  // on top of --trials; what came with the program is nearby
    const auto started = begin_if_planned(*former_);
    if (!started) return tl::unexpected(started.error());
    on_top_ = *started ? 1 : 0;
  }
  for (const Config& config : tools_.nearby) {
    if (tools_.options.max_trials > 0 && handed_out_ >= tools_.options.max_trials) return {};
    const auto started = begin_if_planned(config);
    if (!started) return tl::unexpected(started.error());
    if (*started) ++handed_out_;
  }
  return {};
}

// False where it is not among those that can run, or was begun before.
Expected<bool> Session::begin_if_planned(const Config& config) {
  const auto found =
      std::find_if(plan_.survivors.begin(), plan_.survivors.end(),
                   [&](const search::Candidate& each) { return each.config == config; });
  if (found == plan_.survivors.end()) return false;
  const auto candidate = static_cast<std::size_t>(found - plan_.survivors.begin());
  if (begun_[candidate]) return false;
  if (auto started = begin(candidate); !started) return tl::unexpected(started.error());
  return true;
}

Expected<void> Session::collect_code(milliseconds timeout) {
  auto arrived = code_.poll(timeout);
  if (!arrived) return tl::unexpected(arrived.error());
  for (auto& [ticket, code] : *arrived) {
    const auto found = compiling_.find(ticket);
    Item item = std::move(found->second);
    compiling_.erase(found);
    item.code = std::move(code);
    if (auto judged = judge_code(std::move(item)); !judged) return judged;
  }
  return {};
}

void Session::submit_next() {
  if (ready_.empty()) return;
  measuring_ = std::move(ready_.front());
  ready_.pop_front();
  worker::MeasureRequest request;
  request.id = measuring_->candidate;
  request.problem = plan_.problem;
  request.config = to_string(measuring_->trial.config);
  request.cubin = measuring_->code->image;
  // The first is timed beside itself: a reference is so at one place of the operands.
  request.reference = reference_.code ? reference_.config : request.config;
  request.reference_cubin = reference_.code ? reference_.code->image : request.cubin;
  request.options.behind_us = best_us_ * kClocks;
  request.options.seed = tools_.options.seed;
  request.options.max_sms = tools_.options.limits.max_sms;
  tools_.measurer.submit(request);
}

Expected<void> Session::collect_measurement(milliseconds timeout) {
  auto reply = tools_.measurer.poll(timeout);
  if (!reply) return tl::unexpected(reply.error());
  if (!*reply) return {};
  Item item = std::move(*measuring_);
  measuring_.reset();
  item.trial.outcome = (*reply)->outcome;
  item.trial.verdict = (*reply)->verdict;
  item.trial.measurement = (*reply)->measurement;
  item.trial.log = std::move((*reply)->log);
  if (item.trial.outcome == Outcome::ok) {
    double& us = item.trial.measurement.median_us;
    const double beside = (*reply)->reference_us;  // 0: it could not be timed
    if (!reference_.code) {
      reference_ = {to_string(item.trial.config), item.code, beside > 0 ? beside : us};
    }
    if (beside > 0) us *= reference_.us / beside;
  }
  // The next one starts before this one is written down.
  if (item.trial.outcome == Outcome::ok) improve(item.trial.measurement.median_us);
  if (!last_call()) submit_next();
  finish(std::move(item), false);
  return {};
}

}  // namespace autotune::tune

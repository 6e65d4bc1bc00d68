// The life of one trial inside a session: begun, judged by its code, finished.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "autotune/tune/run_info.h"
#include "autotune/tune/session.h"
#include "kernels/problem.h"

namespace autotune::tune {
namespace {

constexpr std::size_t kDefault = 0;  // the plan's first survivor

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

constexpr std::int64_t kMostFailures = 3;  // of each outcome, that are kept

bool is_slow(Outcome outcome) {
  return outcome == Outcome::spilled || outcome == Outcome::serialised;
}

}  // namespace

double Session::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - tools_.start).count();
}

Expected<void> Session::begin(std::size_t candidate) {
  if (begun_[candidate]) return {};
  begun_[candidate] = true;
  const search::Candidate& planned = plan_.survivors[candidate];
  Item item;
  item.candidate = candidate;
  item.trial.config = planned.config;
  item.trial.predicted = planned.resources;
  item.trial.predicted_us = planned.predicted_us;
  item.hash = source_hash(planned.config, traits_, tools_.device);
  if (reuse(item)) {
    finish(std::move(item), true);
    return {};
  }
  const Config config = planned.config;
  const std::string hash = item.hash;
  compiling_.emplace(candidate, std::move(item));
  had_code_.try_emplace(code_of(config), code_.want(candidate, config, traits_, hash));
  return {};
}

// Whether its code was there before this session asked for it, in this tile order or another.
bool Session::had_code(std::size_t candidate) {
  const Config& config = plan_.survivors[candidate].config;
  const auto [known, is_new] = had_code_.try_emplace(code_of(config));
  if (is_new) {
    known->second = code_.find(source_hash(config, traits_, tools_.device)) != nullptr;
  }
  return known->second;
}

// Failures count too: what failed once is not tried again under the same key.
bool Session::reuse(Item& item) {
  if (tools_.options.fresh) return false;
  const cache::TrialRecord* known = ledger_.find(to_string(item.trial.config), item.hash);
  if (!known) return false;
  const bool wants_slow = tools_.options.limits.keep_slow || item.candidate == kDefault;
  if (wants_slow && is_slow(known->outcome)) return false;
  item.trial.outcome = known->outcome;
  item.trial.verdict = known->verdict;
  item.trial.actual = known->actual;
  item.trial.measurement = known->measurement;
  item.trial.compile_seconds = known->compile_seconds;
  item.trial.log = known->log;
  return true;
}

Expected<void> Session::judge_code(Item item) {
  const Code& code = *item.code;
  Trial& trial = item.trial;
  trial.actual = code.actual;
  trial.compile_seconds = code.seconds;
  trial.outcome = code.outcome;
  if (code.outcome != Outcome::ok) {
    trial.log = code.log;
    finish(std::move(item), false);
    return {};
  }
  auto verdict = judge(trial.config, trial.predicted, code.actual, tools_.device);
  if (!verdict) return tl::unexpected(verdict.error());
  trial.verdict = *verdict;
  if (trial.verdict) {
    trial.outcome = Outcome::over_budget;
    trial.log = describe(*trial.verdict, tools_.device);
  } else if (!tools_.options.limits.keep_slow && item.candidate != kDefault) {
    if (code.actual.spills()) trial.outcome = Outcome::spilled;
    if (code.actual.serialised) trial.outcome = Outcome::serialised;
  }
  if (trial.outcome != Outcome::ok) {
    finish(std::move(item), false);
  } else {
    ready_.push_back(std::move(item));
  }
  return {};
}

void Session::improve(double us) {
  if (best_us_ == 0 || us < best_us_) best_us_ = us;
}

void Session::ensure_run() {
  if (!ledger_.writes() || ledger_.begun()) return;
  ledger_.begin(run_info(tools_.device, tools_.options, tools_.measurer));
}

void Session::finish(Item item, bool reused) {
  const Trial& trial = item.trial;
  const double us = trial.measurement.median_us;
  const bool ok = trial.outcome == Outcome::ok;
  if (item.candidate == kDefault) default_done_ = true;
  if (former_ == trial.config) former_done_ = true;
  history_.push_back({item.candidate, trial.outcome, ok ? us : 0});
  const std::int64_t alike = ++result_.outcomes[std::string(to_string(trial.outcome))];
  if (reused) ++result_.reused;
  if (ok) {
    improve(us);
    if (item.candidate == kDefault) default_good_ = good_.size();
    if (former_ == trial.config) former_good_ = good_.size();
    good_.push_back(trial);
    good_hashes_.push_back(item.hash);
  } else {
    ++failed_;
    if (!is_slow(trial.outcome) && alike <= kMostFailures) result_.failures.push_back(trial);
    if (first_failure_.empty()) {
      first_failure_ = fmt::format("{}: {}{}", to_string(trial.config), to_string(trial.outcome),
                                   trial.log.empty() ? "" : ", " + first_line(trial.log));
    }
  }
  if (!reused) {
    ensure_run();
    ledger_.record(trial, item.hash);
  }
  tools_.observer.tried(trial, progress());
}

Progress Session::progress() const {
  Progress progress;
  progress.measured = static_cast<std::int64_t>(history_.size());
  const auto survivors = static_cast<std::int64_t>(plan_.survivors.size());
  // A strategy that stops by itself has no total.
  if (tools_.options.strategy != "model") progress.total = survivors;
  if (tools_.options.max_trials > 0) {
    progress.total = std::min(tools_.options.max_trials + on_top_, survivors);
  }
  progress.failed = failed_;
  progress.best_us = best_us_;
  progress.elapsed_s = elapsed_s();
  const auto left =
      static_cast<double>(std::max<std::int64_t>(0, progress.total - progress.measured));
  const double by_pace = progress.elapsed_s / static_cast<double>(progress.measured) * left;
  const double budget = tools_.options.budget_seconds;
  const double by_budget = std::max(0.0, budget - progress.elapsed_s);
  if (progress.total > 0) progress.left_s = by_pace;
  if (budget > 0) progress.left_s = progress.total > 0 ? std::min(by_pace, by_budget) : by_budget;
  return progress;
}

}  // namespace autotune::tune

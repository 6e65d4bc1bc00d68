#include "autotune/tune/ledger.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "kernels/problem.h"
#include "kernels/stages.h"

namespace autotune::tune {

Ledger::Ledger(cache::Store* store, const Problem& problem, const DeviceSpec& device,
               std::string fingerprint, std::string compiler, Warn warn)
    : store_(store),
      problem_(problem),
      problem_key_(problem_key(problem)),
      fingerprint_(std::move(fingerprint)),
      compiler_(std::move(compiler)),
      warn_(std::move(warn)) {
  if (!store_) return;
  auto rows = store_->trials(problem_key_, fingerprint_);
  auto winner = store_->winner(problem_key_, fingerprint_);
  if (!rows || !winner) {
    warn_(fmt::format("the cache cannot be read, everything is measured again: {}",
                      (rows ? winner.error() : rows.error()).message));
    return;
  }
  for (cache::TrialRecord& row : *rows) {
    if (row.key.compiler != compiler_) continue;
    auto key = std::pair(row.key.config, row.key.source_hash);
    known_.insert_or_assign(std::move(key), std::move(row));
  }
  winner_ = std::move(*winner);
  if (!winner_) return;
  const cache::TrialKey& key = winner_->trial.key;
  winner_is_current_ = has_source_hash(key.config, problem_, device, key.source_hash);
}

bool Ledger::writes() const { return store_ && store_->writable() && !broken_; }

void Ledger::write_failed(const Error& error) {
  if (std::exchange(broken_, true)) return;
  warn_(fmt::format("the cache cannot be written, this run is not kept: {}", error.message));
}

void Ledger::begin(cache::RunInfo info) {
  if (!writes() || begun()) return;
  info.device_fingerprint = fingerprint_;
  info.compiler = compiler_;
  info_ = std::move(info);
  const auto run = store_->begin_run(info_);
  if (run) {
    run_ = *run;
  } else {
    write_failed(run.error());
  }
}

// The run itself is gone where another process found the file damaged and moved it aside.
Expected<void> Ledger::put(cache::TrialRecord& row) {
  auto recorded = store_->record(row);
  if (recorded) return recorded;
  const auto run = store_->begin_run(info_);
  if (!run) return recorded;
  row.run = run_ = *run;
  return store_->record(row);
}

void Ledger::end(const std::map<std::string, std::int64_t>& rejected) {
  if (!writes() || !begun()) return;
  if (const auto ended = store_->end_run(run_, rejected); !ended) write_failed(ended.error());
}

const cache::TrialRecord* Ledger::find(const std::string& config,
                                       const std::string& source_hash) const {
  const auto found = known_.find({config, source_hash});
  return found == known_.end() ? nullptr : &found->second;
}

cache::TrialRecord Ledger::row_of(const Trial& trial, const std::string& source_hash) const {
  cache::TrialRecord row;
  row.run = run_;
  row.key = {problem_key_, fingerprint_, to_string(trial.config), source_hash, compiler_};
  row.problem = problem_;
  row.outcome = trial.outcome;
  row.verdict = trial.verdict;
  row.predicted = trial.predicted;
  row.actual = trial.actual;
  row.measurement = trial.measurement;
  row.compile_seconds = trial.compile_seconds;
  row.log = trial.log;
  row.time = std::time(nullptr);
  return row;
}

void Ledger::record(const Trial& trial, const std::string& source_hash) {
  if (!writes() || !begun()) return;
  cache::TrialRecord row = row_of(trial, source_hash);
  if (const auto recorded = put(row); !recorded) write_failed(recorded.error());
}

bool Ledger::crown(const TuneResult& result, const std::string& source_hash) {
  if (!writes() || !begun()) return false;
  if (result.cancelled && winner_is_current_ &&
      result.winner.measurement.median_us >= winner_->trial.measurement.median_us) {
    return false;
  }
  cache::WinnerRecord record;
  record.trial = row_of(result.winner, source_hash);
  record.lead_percent = result.lead_percent;
  record.tie = result.tie;
  record.default_us = result.default_us;
  record.seconds = result.seconds;
  auto stored = put(record.trial);
  if (stored) stored = store_->crown(record);
  if (!stored) write_failed(stored.error());
  return stored.has_value();
}

}  // namespace autotune::tune

// What one tuning run reads from the cache and writes to it. A cache that cannot be read or written
// costs one warning, never the result.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "autotune/tune/tuner.h"
#include "cache/store.h"
#include "kernels/trial.h"

namespace autotune::tune {

class Ledger {
 public:
  using Warn = std::function<void(const std::string&)>;

  // `store` may be null. `fingerprint` is the device's, with whatever else makes times of this run
  // incomparable to those of others.
  Ledger(cache::Store* store, const Problem& problem, const DeviceSpec& device,
         std::string fingerprint, std::string compiler, Warn warn);

  // Once, before the first record(); does nothing without a writable cache.
  void begin(cache::RunInfo info);
  void end(const std::map<std::string, std::int64_t>& rejected);
  bool begun() const { return run_ != 0; }
  bool writes() const;

  // The trial under the same key, of whatever run.
  const cache::TrialRecord* find(const std::string& config, const std::string& source_hash) const;
  // The winner of this problem so far.
  const std::optional<cache::WinnerRecord>& winner() const { return winner_; }
  // Its time is that of the code that its config has today.
  bool winner_is_current() const { return winner_is_current_; }

  void record(const Trial& trial, const std::string& source_hash);
  // True when the result's winner is stored: a run that was stopped early replaces a current winner
  // only where it beats that.
  bool crown(const TuneResult& result, const std::string& source_hash);
  void write_failed(const Error& error);

 private:
  cache::TrialRecord row_of(const Trial& trial, const std::string& source_hash) const;
  Expected<void> put(cache::TrialRecord& row);

  cache::Store* store_;
  const Problem& problem_;
  std::string problem_key_;
  std::string fingerprint_;
  std::string compiler_;
  Warn warn_;
  std::map<std::pair<std::string, std::string>, cache::TrialRecord> known_;  // config, hash
  std::optional<cache::WinnerRecord> winner_;
  bool winner_is_current_ = false;
  cache::RunInfo info_;
  std::int64_t run_ = 0;
  bool broken_ = false;
};

}  // namespace autotune::tune

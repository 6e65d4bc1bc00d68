// How rows from elsewhere join a store: per key the better one stays, whatever the order in which
// they come and however often.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache/sqlite.h"
#include "cache/store.h"

namespace autotune::cache {

// A run as it is copied: its uid is the same in every store.
struct RunRow {
  std::string uid;
  RunInfo info;
  std::int64_t started = 0;
  std::int64_t ended = 0;  // 0: it never ended
};

// Works inside a write transaction of its caller. First the winners that the store itself has are
// proposed, then all that comes is added and proposed, then crown_best() decides.
class Merger {
 public:
  explicit Merger(const Connection& db) : db_(db) {}

  Expected<void> add_run(const RunRow& run, const std::map<std::string, std::int64_t>& rejected);
  // `run` is the uid of a run that was added, empty for none. Of two under one key the better
  // stays: success before failure, then the lower time; of equals the earlier success, the later
  // failure.
  Expected<void> add_trial(TrialRecord trial, const std::string& run);
  Expected<void> add_cubin(const CubinKey& key, const CubinRecord& cubin);

  void propose(WinnerRecord winner, const std::string& run);
  // The winner of each proposed problem and device: the proposal whose trial, as it is stored now,
  // has the lowest time; a current one before any other.
  Expected<void> crown_best(const IsCurrent& is_current);

  const Merged& counts() const { return counts_; }

 private:
  struct Proposal {
    WinnerRecord winner;
    std::string text;  // of its trial as proposed
  };

  Expected<void> settle_problem(const TrialRecord& trial);
  Expected<void> crown(const std::vector<Proposal>& proposals, const IsCurrent& is_current);

  const Connection& db_;
  Merged counts_;
  std::map<std::string, std::int64_t> run_ids_;  // by uid
  std::set<std::string> problems_;               // what settle_problem() has seen
  std::map<std::pair<std::string, std::string>, std::vector<Proposal>> proposals_;
};

}  // namespace autotune::cache

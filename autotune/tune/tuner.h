// The tuning loop: from a problem to a winner in the cache.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/store.h"
#include "kernels/trial.h"
#include "search/plan.h"

namespace autotune::tune {

struct TuneOptions {
  double budget_seconds = 0;    // 0: until the strategy is done
  std::int64_t max_trials = 0;  // configs tried, whatever comes of them; 0: no bound
  std::string strategy = "model";
  std::size_t patience = 0;  // as StrategyOptions has it
  int jobs = 0;              // compile workers; 0: one per core
  std::uint64_t seed = 1;
  bool fresh = false;         // measure again what the cache holds
  bool from_scratch = false;  // of what won before, try this problem's winner in `store` alone
  search::Limits limits;
  search::Space space;           // of its family; that of another is the built-in one
  std::filesystem::path worker;  // executable; empty: found

  // Nothing was left out on request, so that the winner is everybody's.
  bool whole_space() const { return !limits.restricts() && space.built_in; }
  // The options that left something out, as a person gives them: "--max-sms, --exclude".
  std::string limited_by() const;
};

struct TuneResult {
  Problem problem;
  Trial winner;
  std::string match;        // "exact": this is the winner for exactly this problem
  double default_us = 0;    // the default config in the same run; 0 where it failed
  double lead_percent = 0;  // over the second
  bool tie = false;
  bool crowned = false;  // stored as the shared winner
  bool cancelled = false;
  std::map<std::string, std::int64_t> outcomes;  // trials per outcome, those from the cache too
  // Survivors that did not compile, did not run or computed wrong results, the first few of
  // each outcome: none, where host twins, kernels and compiler are right.
  std::vector<Trial> failures;
  std::int64_t reused = 0;    // trials answered by the cache
  std::int64_t compiled = 0;  // codes that no cache held
  double seconds = 0;
  // The winner and those that the final could hardly tell from it, the best first; and the default.
  std::vector<Trial> finalists;
  std::optional<Trial> default_trial;
};

struct Progress {
  std::int64_t measured = 0;
  std::int64_t total = 0;  // what the strategy or --trials allows; 0: unknown
  std::int64_t failed = 0;
  double best_us = 0;  // 0: none yet
  double elapsed_s = 0;
  double left_s = 0;  // of the budget, or estimated; 0: unknown
};

// What a tuning run tells whoever watches. Calls come from the tuner's thread, in order.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void planned(const search::Plan& plan) = 0;
  virtual void tried(const Trial& trial, const Progress& progress) = 0;
  virtual void warning(const std::string& message) = 0;
};

// Keeps its workers from problem to problem. The device must be present (index as the driver
// counts).
class Tuner {
 public:
  static Expected<Tuner> create(const DeviceSpec& device, int device_index,
                                const TuneOptions& options);
  Tuner(Tuner&&) noexcept;
  Tuner& operator=(Tuner&&) noexcept;
  ~Tuner();

  // What won for this problem or ones like it, in `store` or in what came with the program, is
  // tried early on. `store` may be null: nothing is kept. `stop` is looked at between events; once
  // true the best so far is returned with `cancelled`. Errors: nothing_fits, no_compiler, failed
  // (no config worked: the message says what became of them), cancelled (before anything worked).
  Expected<TuneResult> tune(const Problem& problem, cache::Store* store, Observer& observer,
                            const std::atomic<bool>& stop);

 private:
  struct Impl;
  explicit Tuner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::tune

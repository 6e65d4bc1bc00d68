// One problem on its way through the loop: the strategy's batches are compiled while the config
// before is measured; every trial is written down as soon as it is known.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "autotune/tune/code.h"
#include "autotune/tune/finalists.h"
#include "autotune/tune/ledger.h"
#include "autotune/tune/tuner.h"
#include "autotune/worker/pool.h"
#include "search/strategy.h"

namespace autotune::tune {

using Clock = std::chrono::steady_clock;

// What of a budget is for searching: the rest is for timing the finalists again. A look that has
// begun is finished: where launches are long and the budget small, some tenths of a second behind
// it.
double without_final(double budget_seconds);

// What a session uses and does not own.
struct SessionTools {
  const DeviceSpec& device;
  const TuneOptions& options;
  worker::CompilePool& pool;
  worker::MeasureWorker& measurer;
  CodeMemory& memory;
  Observer& observer;
  const std::atomic<bool>& stop;
  Clock::time_point start;  // of the call: planning counts too
  std::string compiler;
  std::vector<Config> nearby;    // what won for this problem or ones like it elsewhere
  std::optional<Config> former;  // that of them which won for this very problem
};

class Session {
 public:
  Session(SessionTools tools, const search::Plan& plan, cache::Store* store);
  ~Session();  // forgets what is at work
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Expected<TuneResult> run();

 private:
  struct Item {
    std::size_t candidate = 0;
    Trial trial;
    std::string hash;
    CodePtr code;
  };

  // session.cc: the loop
  Expected<void> search();
  Expected<void> refill(search::Strategy& strategy);
  Expected<void> begin_known_winners();
  Expected<bool> begin_if_planned(const Config& config);
  Expected<void> collect_code(std::chrono::milliseconds timeout);
  Expected<void> collect_measurement(std::chrono::milliseconds timeout);
  void submit_next();
  bool time_is_up() const;
  bool enough() const;
  bool last_call() const { return time_is_up() && enough(); }
  std::size_t outstanding() const;

  // trials.cc: one trial
  Expected<void> begin(std::size_t candidate);
  bool had_code(std::size_t candidate);
  bool reuse(Item& item);
  Expected<void> judge_code(Item item);
  void finish(Item item, bool reused);
  void improve(double us);
  void ensure_run();
  Progress progress() const;
  double elapsed_s() const;

  // result.cc: the end
  Expected<TuneResult> conclude();
  bool out_of_time() const;
  Expected<std::optional<worker::CompareReply>> look(const std::vector<const Trial*>& trials,
                                                     Look look);
  Error nothing_worked() const;

  SessionTools tools_;
  const search::Plan& plan_;
  KernelTraits traits_;
  Ledger ledger_;
  CodeSource code_;

  std::map<std::uint64_t, Item> compiling_;  // by ticket
  std::deque<Item> ready_;                   // compiled, to be measured
  std::optional<Item> measuring_;
  std::vector<bool> begun_;                                // by candidate
  std::unordered_map<Config, bool, ConfigHash> had_code_;  // by code, when first thought of
  std::vector<search::Observation> history_;
  std::vector<Trial> good_;  // the trials that are ok
  std::vector<std::string> good_hashes_;
  std::optional<std::size_t> default_good_;  // where in good_ the default config is
  std::optional<Config> former_;             // the winner of an earlier run
  std::optional<std::size_t> former_good_;   // where in good_ that is
  bool default_done_ = false;
  bool former_done_ = false;
  std::optional<std::size_t> silent_at_;  // length of the history when the strategy had no more
  double best_us_ = 0;
  // The first config that worked, which all others are timed beside: as if the clocks had stayed as
  // they were then.
  struct Reference {
    std::string config;
    CodePtr code;
    double us = 0;
  };
  Reference reference_;
  std::int64_t handed_out_ = 0;  // to be tried
  std::int64_t on_top_ = 0;      // and a former winner, on top of --trials
  bool known_begun_ = false;
  std::int64_t failed_ = 0;
  std::string first_failure_;
  std::uint64_t looks_ = 0;
  TuneResult result_;
};

}  // namespace autotune::tune

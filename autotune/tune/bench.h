// Timing given configs for given problems, alone or in turns with a baseline.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autotune/types.h"
#include "cache/store.h"
#include "kernels/trial.h"
#include "search/check.h"

namespace autotune::tune {

struct BenchOptions {
  bool baseline = false;         // against the best of cuBLASLt and cuBLAS
  int rounds = 30;               // launches of each side
  int most_rounds = 800;         // where those leave the ratio uncertain
  double sustain_s = 0;          // with a baseline: in place of rounds, both back to back so long
  std::uint64_t seed = 1;        // of the inputs
  search::Limits limits;         // but for the quality rules: who names a config wants it timed
  int jobs = 0;                  // compile workers; 0: one per core
  std::filesystem::path worker;  // executable; empty: found
};

struct BenchItem {
  Problem problem;  // checked
  Config config;
  std::optional<Config> baseline;  // compared with this, in place of BenchOptions::baseline
};

struct Baseline {
  std::string name;  // "cublasLt #3", or a config
  double median_us = 0;
  int candidates = 0;  // how many were timed to find it; 0 for a config
};

struct BenchRow {
  Problem problem;
  Config config;
  Outcome outcome = Outcome::ok;   // else the rest is not measured, and `log` says why
  std::optional<Verdict> verdict;  // what does not fit, where that is why
  std::string log;
  Measurement measurement;
  std::optional<Baseline> baseline;
  double speedup = 0;  // baseline time / ours; 0 without a baseline
  double speedup_lo = 0;
  double speedup_hi = 0;        // 95 % confidence interval
  double floor_percent = 0;     // hardware floor / our time
  bool floor_measured = false;  // by measured curves; else by the datasheet
};

using BenchObserver = std::function<void(const BenchRow& row)>;

// Rows in the order of `items`, each told to `observer` when it is done; what is missing is
// compiled ahead. `store` (cubins) may be null. Errors: no_gpu, no_compiler, failed, cancelled
// (with `stop`).
Expected<std::vector<BenchRow>> bench(const std::vector<BenchItem>& items, const DeviceSpec& device,
                                      int device_index, const BenchOptions& options,
                                      cache::Store* store, const BenchObserver& observer,
                                      const std::atomic<bool>& stop);

}  // namespace autotune::tune

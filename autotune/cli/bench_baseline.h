// What `autotune bench` times a config against: --baseline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/cli/request.h"
#include "autotune/lookup/answer.h"
#include "autotune/tune/bench.h"
#include "cache/store.h"

namespace autotune::cli {

struct BenchBaseline {
  bool cublas = false;
  std::string config;                   // as it was written; empty: none
  std::optional<cache::Store> winners;  // of another cache

  bool any() const { return cublas || !config.empty() || winners; }
};

// cublas, none, a config of the family or another cache's file. bad_input for anything else, with
// what is wrong; a cache that cannot be read is an error too.
Expected<BenchBaseline> read_bench_baseline(const Options& options, const Family& family);

// Gives each item what it is compared with; a problem that the other cache holds no winner of is
// said to be timed alone.
Expected<void> add_baselines(const BenchBaseline& baseline, const Family& family,
                             const DeviceSpec& device, const lookup::Bounds& bounds, Output& output,
                             std::vector<tune::BenchItem>& items);

}  // namespace autotune::cli

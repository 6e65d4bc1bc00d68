// Does the resource check tell the truth? Survivors and rejected configs are compiled, without a
// GPU, and the cubins' own attributes are held against the device's limits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autotune/worker/pool.h"
#include "search/plan.h"

namespace autotune::tune {

struct AuditOptions {
  int survivors = 0;  // how many to compile; < 0: all
  int rejects = 0;    // how many that a hard rule rejected
  std::uint64_t seed = 1;
};

// Compiled code by source hash and architecture: problems that differ in their sizes alone share
// their cubins. The images themselves are not kept.
using CompiledMemo = std::map<std::string, worker::CompileReply>;

// Absolute differences between estimated and actual registers per thread.
struct RegisterError {
  std::int64_t samples = 0;
  double median = 0;
  double p90 = 0;
};

struct AuditReport {
  // Of the survivors.
  std::int64_t compiled = 0;    // tried, failures included
  std::int64_t failed = 0;      // did not compile
  std::int64_t mismatches = 0;  // cubin and prediction differ
  double seconds = 0;           // of the whole audit

  // Of both: how many were held against the device's limits, and how many were misjudged.
  std::int64_t sampled = 0;        // rejected configs
  std::int64_t false_passes = 0;   // survivors that cannot run
  std::int64_t false_rejects = 0;  // rejected configs that can

  // Quality, reported only.
  RegisterError registers;
  std::int64_t spill_predicted = 0;  // sampled configs that the check expects to spill...
  std::int64_t spill_right = 0;      // ... and that do
  std::int64_t spill_missed = 0;     // compiled survivors that spill all the same

  std::vector<std::string> findings;  // one sentence per failure, mismatch and misjudgement

  bool clean() const {
    return failed == 0 && mismatches == 0 && false_passes == 0 && false_rejects == 0;
  }
};

// Called after each compiled config with how many of `total` are done.
using AuditProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// `plan` was made from the same device, space and limits. Errors: no_compiler, failed (workers that
// do not get ready), cancelled.
Expected<AuditReport> audit(const search::Plan& plan, const DeviceSpec& device,
                            const search::Space& space, const search::Limits& limits,
                            const AuditOptions& options, worker::CompilePool& pool,
                            CompiledMemo& memo, const AuditProgress& progress,
                            const std::atomic<bool>& stop);

}  // namespace autotune::tune

// The resource check: which limit a config breaks, cheap enough for a million configs a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/verdict.h"

namespace autotune::search {

// What the user added to the device's own limits.
struct Limits {
  std::int64_t max_smem = 0;  // cap in bytes on static + dynamic shared memory; 0: none
  std::vector<ConfigPattern> excludes;
  bool keep_slow = false;  // switches the quality rules off
  int max_sms = 0;         // cap on SMs used; 0: none

  // A run with a cap or an exclude never crowns the shared winner.
  bool restricts() const { return max_smem > 0 || !excludes.empty() || max_sms > 0; }
};

bool is_excluded(const Config& config, const Limits& limits);

// The first rule that the config breaks, in the order of Rule; nullopt when it can run.
// `resources` receives the prediction when not null.
std::optional<Verdict> check(const Config& config, const Problem& problem,
                             const KernelTraits& traits, const DeviceSpec& device,
                             const Limits& limits, Resources* resources);

// The twin's prediction, with the register estimate kept to what launch bounds allow.
Resources resources_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                       const Limits& limits);

// The first rule that such resources break.
std::optional<Verdict> check_resources(const Resources& resources, const Problem& problem,
                                       const DeviceSpec& device, const Limits& limits);

// Rule::memory for all stages of a problem together, whose own checks know their operands alone.
std::optional<Verdict> check_memory(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Limits& limits);

// The error of a problem that is too large for any config: no config of FAMILY fits, and why.
Error too_large(const Problem& problem, const DeviceSpec& device, const Verdict& verdict);

// Every rule that the config breaks, for `explain`.
std::vector<Verdict> check_all(const Config& config, const Problem& problem,
                               const DeviceSpec& device, const Limits& limits);

// A compiled function against the device and against its prediction, before any launch:
// e.g. 384 threads wanted where the function was compiled for 256.
std::optional<Verdict> check_compiled(const Resources& wanted, const ActualResources& actual,
                                      const DeviceSpec& device);

// The first difference between prediction and cubin in static shared memory, threads, barriers or
// cluster, as a sentence with both numbers; empty where they agree. A difference is a bug.
std::string mismatch(const Resources& predicted, const ActualResources& actual);

// One sentence for any verdict, with the constraint's text for structural ones.
std::string describe(const Verdict& verdict, const Config& config, const DeviceSpec& device);

}  // namespace autotune::search

#include "search/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/problem.h"
#include "kernels/stages.h"
#include "search/occupancy.h"

namespace autotune::search {
namespace {

// Largest gridDim.x, the same for every compute capability (CUDA programming guide, technical
// specifications).
constexpr std::int64_t kMaxGrid = 2147483647;

// n of wgmma.mma_async (PTX ISA 9.0, section on warpgroup-level matrix instructions).
constexpr std::int64_t kMaxWgmmaColumns = 256;

// Sizes can exceed 64 bits (a 2^31-1 squared matrix of 4-byte elements), so they saturate.
std::int64_t saturated(double value) {
  constexpr double kTop = 9223372036854775807.0;
  return value >= kTop ? std::numeric_limits<std::int64_t>::max()
                       : static_cast<std::int64_t>(value);
}

double matrix_bytes(std::int64_t lines, std::int64_t length, std::int64_t leading, int element) {
  const auto pitch = static_cast<double>(std::max(leading, length));
  return (static_cast<double>(lines - 1) * pitch + static_cast<double>(length)) * element;
}

double a_bytes(const Problem& problem) {
  const bool along_k = a_is_k_major(problem.layout);
  return matrix_bytes(along_k ? problem.m : problem.k, along_k ? problem.k : problem.m, problem.lda,
                      storage_bytes(problem.dtype));
}

double weights_bytes(const Problem& problem) {
  const bool along_k = b_is_k_major(problem.layout);
  return (is_gated(problem) ? 2 : 1) * matrix_bytes(along_k ? problem.n : problem.k,
                                                    along_k ? problem.k : problem.n, problem.ldb,
                                                    storage_bytes(problem.dtype));
}

double c_bytes(const Problem& problem) {
  return matrix_bytes(problem.m, problem.n, problem.ldc, storage_bytes(problem.out_dtype));
}

std::int64_t device_bytes(const Problem& problem, const Resources& resources) {
  return saturated(a_bytes(problem) + weights_bytes(problem) + c_bytes(problem) +
                   static_cast<double>(resources.workspace_bytes));
}

// The rules that read the config alone. `found` takes a Verdict and says whether to stop there.
template <class Found>
bool config_rules(const Config& config, const KernelTraits& traits, const Limits& limits,
                  const Found& found) {
  const std::span<const Constraint> constraints = config.kernel->constraints();
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    if (constraints[i].holds(config.values, traits)) continue;
    if (found(Verdict{Rule::structure, 1, 0, static_cast<std::int16_t>(i)})) return true;
  }
  return is_excluded(config, limits) && found(Verdict{Rule::excluded, 1, 0});
}

// The rules on what the config needs, in the order of Rule.
template <class Found>
bool resource_rules(const Resources& need, const Problem& problem, const DeviceSpec& device,
                    const Limits& limits, const Found& found) {
  const ArchLimits& arch = device.limits;
  const auto exceeds = [&found](Rule rule, std::int64_t required, std::int64_t limit) {
    return required > limit && found(Verdict{rule, required, limit});
  };
  if (need.most_rows > 0 && exceeds(Rule::rows, problem.m, need.most_rows)) return true;
  // No more of them on an SM than one: how many registers they take is known to the compiler only.
  if (need.cooperative && exceeds(Rule::co_residency, need.grid,
                                  reached_sms(device, need.cluster, limits.max_sms).value_or(0))) {
    return true;
  }
  if (!need.cooperative && limits.max_sms > 0 &&
      exceeds(Rule::co_residency, need.cluster, limits.max_sms)) {
    return true;
  }
  const std::int64_t smem = need.smem_bytes + need.static_smem_bytes;
  if (limits.max_smem > 0 && exceeds(Rule::user_cap, smem, limits.max_smem)) return true;
  if (exceeds(Rule::shared_memory, smem, arch.smem_optin_per_block)) return true;
  // ptxas refuses more static memory than this, whatever the opt-in.
  if (exceeds(Rule::shared_memory, need.static_smem_bytes, arch.static_smem_per_block)) return true;
  if (exceeds(Rule::threads, need.threads, arch.threads_per_block)) return true;

  // Under __launch_bounds__ ptxas keeps within the cap by spilling, so only code that cannot be
  // compiled within the cap at all cannot be launched.
  const int cap = launch_register_cap(arch, need.threads, need.min_blocks);
  if (need.min_registers > cap &&
      found(Verdict{Rule::registers, registers_of_block(arch, need.threads, need.min_registers),
                    arch.registers_per_block / std::max(1, need.min_blocks)})) {
    return true;
  }
  if (exceeds(Rule::cluster, need.cluster, arch.cluster_portable)) return true;
  if (exceeds(Rule::barriers, need.barriers, arch.named_barriers)) return true;
  if (exceeds(Rule::instruction, need.wgmma_columns, kMaxWgmmaColumns)) return true;
  if (exceeds(Rule::grid, need.grid, kMaxGrid)) return true;
  if (exceeds(Rule::memory, device_bytes(problem, need), device.dram_bytes)) return true;
  if (limits.keep_slow) return false;

  // What cannot be compiled at all does not spill.
  const bool compiles = need.threads <= arch.threads_per_block && need.min_registers <= cap &&
                        need.wgmma_columns <= kMaxWgmmaColumns;
  const int live_cap = need.role_registers > 0 ? need.role_registers : cap;
  if (compiles && exceeds(Rule::predicted_spill, need.register_demand, live_cap)) return true;
  if (need.useful_cluster > 0 && exceeds(Rule::wide_cluster, need.cluster, need.useful_cluster)) {
    return true;
  }
  if (need.min_blocks <= 1) return false;
  // Registers were capped for min_blocks; if something else keeps them out, that was for nothing.
  const int blocks = blocks_per_sm(arch, need.threads, need.registers, need.smem_bytes,
                                   need.static_smem_bytes, need.barriers);
  // Where not even one comes, a hard rule has told why.
  return blocks > 0 && exceeds(Rule::occupancy, need.min_blocks, blocks);
}

}  // namespace

Resources resources_of(const Config& config, const Problem& problem, const DeviceSpec& device,
                       const Limits& limits) {
  Resources need = config.kernel->resources(config, problem, device, limits.max_sms);
  need.registers =
      std::min(need.registers, launch_register_cap(device.limits, need.threads, need.min_blocks));
  return need;
}

bool is_excluded(const Config& config, const Limits& limits) {
  return std::any_of(limits.excludes.begin(), limits.excludes.end(),
                     [&](const ConfigPattern& pattern) { return matches(pattern, config); });
}

std::optional<Verdict> check_resources(const Resources& resources, const Problem& problem,
                                       const DeviceSpec& device, const Limits& limits) {
  Verdict first;
  const auto stop = [&first](const Verdict& verdict) {
    first = verdict;
    return true;
  };
  if (resource_rules(resources, problem, device, limits, stop)) return first;
  return std::nullopt;
}

std::optional<Verdict> check(const Config& config, const Problem& problem,
                             const KernelTraits& traits, const DeviceSpec& device,
                             const Limits& limits, Resources* resources) {
  Verdict first;
  const auto stop = [&first](const Verdict& verdict) {
    first = verdict;
    return true;
  };
  if (config_rules(config, traits, limits, stop)) return first;
  const Resources need = resources_of(config, problem, device, limits);
  if (resources != nullptr) *resources = need;
  return check_resources(need, problem, device, limits);
}

std::optional<Verdict> check_memory(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Limits& limits) {
  const std::size_t last = stage_count(problem) - 1;
  // What passes from one stage to the next is in the workspace.
  double bytes = a_bytes(stage_of(problem, 0)) + c_bytes(stage_of(problem, last)) +
                 static_cast<double>(workspace_of(config, problem, device, limits.max_sms).bytes);
  for (std::size_t i = 0; i <= last; ++i) bytes += weights_bytes(stage_of(problem, i));
  const Verdict verdict{Rule::memory, saturated(bytes), device.dram_bytes};
  return verdict.required > verdict.limit ? std::optional(verdict) : std::nullopt;
}

Error too_large(const Problem& problem, const DeviceSpec& device, const Verdict& verdict) {
  return {ErrorCode::nothing_fits,
          fmt::format("no config of {} fits {} on {}: {}", problem.family,
                      autotune::describe(problem), device.name, describe(verdict, device))};
}

std::vector<Verdict> check_all(const Config& config, const Problem& problem,
                               const DeviceSpec& device, const Limits& limits) {
  std::vector<Verdict> verdicts;
  const auto collect = [&verdicts](const Verdict& verdict) {
    verdicts.push_back(verdict);
    return false;
  };
  config_rules(config, traits_of(problem), limits, collect);
  const Resources need = resources_of(config, problem, device, limits);
  resource_rules(need, problem, device, limits, collect);
  return verdicts;
}

std::string describe(const Verdict& verdict, const Config& config, const DeviceSpec& device) {
  if (verdict.rule == Rule::structure) {
    const std::span<const Constraint> constraints = config.kernel->constraints();
    const auto index = static_cast<std::size_t>(verdict.constraint);
    if (verdict.constraint >= 0 && index < constraints.size()) {
      return std::string(constraints[index].text) + " (" + std::string(constraints[index].name) +
             ")";
    }
  }
  return describe(verdict, device);
}

}  // namespace autotune::search

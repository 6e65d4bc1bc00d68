#include "kernels/verdict.h"

#include <fmt/format.h>

#include "kernels/device_spec.h"
#include "kernels/problem.h"

namespace autotune {
namespace {

constexpr std::array<std::string_view, kRuleCount> kRules = {
    "structure", "excluded",        "rows",      "co_residency", "user_cap",    "shared_memory",
    "threads",   "registers",       "cluster",   "barriers",     "instruction", "grid",
    "memory",    "predicted_spill", "occupancy", "wide_cluster"};

constexpr std::array<std::string_view, kOutcomeCount> kOutcomes = {
    "pruned",      "compile_failed", "compile_crashed", "spilled", "serialised",
    "over_budget", "launch_failed",  "timed_out",       "faulted", "wrong_result",
    "ok"};

std::string short_of(std::string_view resource, const Verdict& verdict, std::string_view unit,
                     std::string_view where) {
  return fmt::format("out of resource: {}, required {}{}, limit {}{} ({})", resource,
                     verdict.required, unit, verdict.limit, unit, where);
}

}  // namespace

std::string_view to_string(Rule rule) { return kRules[static_cast<std::size_t>(rule)]; }

std::optional<Rule> parse_rule(std::string_view text) {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (kRules[i] == text) return static_cast<Rule>(i);
  }
  return std::nullopt;
}

bool is_hard(Rule rule) { return rule >= Rule::shared_memory && rule <= Rule::memory; }
bool is_quality(Rule rule) { return rule >= Rule::predicted_spill; }

std::string describe(const Verdict& verdict, const DeviceSpec& device) {
  const std::string per_block = device.name + ", per block";
  switch (verdict.rule) {
    case Rule::structure:
      return fmt::format("structural constraint {} does not hold", verdict.constraint);
    case Rule::excluded:
      return "excluded by --exclude";
    case Rule::rows:
      return fmt::format("too many rows of C: required {}, limit {} (of this config)",
                         verdict.required, verdict.limit);
    case Rule::co_residency:
      if (verdict.limit == 0) {
        return fmt::format(
            "{} blocks that wait for each other: how many SMs their clusters reach at once is not "
            "known of {} (clustered_sms of its file)",
            verdict.required, device.name);
      }
      return fmt::format(
          "too many blocks that wait for each other: required {}, limit {} ({}, one on each SM "
          "that their clusters reach at once)",
          verdict.required, verdict.limit, device.name);
    case Rule::user_cap:
      return short_of("shared memory", verdict, " bytes", "--max-smem");
    case Rule::shared_memory:
      // Without the opt-in there is less, and it is only for what is declared with a size.
      if (verdict.limit == device.limits.static_smem_per_block) {
        return short_of("static shared memory", verdict, " bytes", per_block);
      }
      return short_of("shared memory", verdict, " bytes", device.name + ", opt-in per block");
    case Rule::threads:
      // Below the device's own limit it is the function that was compiled for fewer.
      if (verdict.limit < device.limits.threads_per_block) {
        return short_of("threads", verdict, "", "per block as the function was compiled");
      }
      return short_of("threads", verdict, "", per_block);
    case Rule::registers:
      return short_of("registers", verdict, "", per_block);
    case Rule::cluster:
      return short_of("cluster", verdict, " blocks", device.name);
    case Rule::barriers:
      return short_of("named barriers", verdict, "", per_block);
    case Rule::instruction:
      return short_of("instruction", verdict, " columns of C", device.name + ", wgmma");
    case Rule::grid:
      return short_of("grid", verdict, " blocks", device.name);
    case Rule::memory:
      return short_of("device memory", verdict, " bytes", device.name);
    case Rule::predicted_spill:
      return fmt::format("would spill: registers per thread, required {}, limit {} ({})",
                         verdict.required, verdict.limit, device.name);
    case Rule::occupancy:
      return fmt::format(
          "would run badly: registers are saved for {} blocks per SM (min_blocks), limit {} ({})",
          verdict.required, verdict.limit, device.name);
    case Rule::wide_cluster:
      return fmt::format(
          "would run badly: a cluster of {} blocks shares loads, limit {} (more gain only where "
          "rows of A or B begin within a line of {} bytes, and clustered_sms in the file of {} "
          "says how many SMs they reach)",
          verdict.required, verdict.limit, kL2Line, device.name);
  }
  return {};
}

std::string_view to_string(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> parse_outcome(std::string_view text) {
  for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
    if (kOutcomes[i] == text) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace autotune

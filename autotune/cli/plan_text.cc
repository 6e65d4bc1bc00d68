#include "autotune/cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/cli/text.h"
#include "kernels/problem.h"
#include "search/occupancy.h"

namespace autotune::cli {

using Align = Table::Align;

std::string funnel_text(const search::Plan& plan) {
  Table table({{"", Align::left}, {"", Align::right}});
  table.add({"generated", grouped(plan.generated)});
  for (int i = 0; i < kRuleCount; ++i) {
    const std::string rule(to_string(static_cast<Rule>(i)));
    for (const auto& [name, count] : plan.rejected) {
      if (name == rule || name.starts_with(rule + ":")) table.add({"  " + name, grouped(-count)});
    }
  }
  table.add({"survivors", grouped(static_cast<std::int64_t>(plan.survivors.size()))});
  std::string text = table.str();
  for (const std::string& reason : plan.unsupported) text += "  left out: " + reason + "\n";
  return text;
}

std::string default_text(const search::Plan& plan) {
  const search::Candidate& best = plan.default_config();
  return fmt::format("{}, predicted {} ({} TFLOP/s)", to_string(best.config),
                     microseconds(best.predicted_us),
                     teraflops(tflops_of(flops(plan.problem), best.predicted_us)));
}

std::string ranked_text(const search::Plan& plan, const DeviceSpec& device) {
  Table table({{"#"},
               {"predicted"},
               {"smem bytes"},
               {"threads"},
               {"registers"},
               {"blocks/SM"},
               {"config", Align::left}});
  const std::size_t shown = std::min(kRankedShown, plan.survivors.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const search::Candidate& each = plan.survivors[i];
    table.add({fmt::format("{}", i + 1), microseconds(each.predicted_us),
               grouped(smem_of(each.resources)), fmt::format("{}", each.resources.threads),
               fmt::format("{}", each.resources.registers),
               fmt::format("{}", blocks_of(each.resources, device)), to_string(each.config)});
  }
  return table.str();
}

io::PlanRowJson plan_row(const search::Plan& plan, const DeviceSpec& device) {
  io::PlanRowJson row;
  row.problem = plan.problem;
  row.generated = plan.generated;
  row.rejected = plan.rejected;
  row.survivors = static_cast<std::int64_t>(plan.survivors.size());
  row.default_config = to_string(plan.default_config().config);
  const std::size_t shown = std::min(kRankedShown, plan.survivors.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const search::Candidate& each = plan.survivors[i];
    row.ranked.push_back({to_string(each.config), each.predicted_us, smem_of(each.resources),
                          each.resources.threads, each.resources.registers,
                          blocks_of(each.resources, device)});
  }
  return row;
}

int blocks_of(const Resources& resources, const DeviceSpec& device) {
  return search::blocks_per_sm(device.limits, resources.threads, resources.registers,
                               resources.smem_bytes, resources.static_smem_bytes,
                               resources.barriers);
}

std::int64_t smem_of(const Resources& resources) {
  return resources.smem_bytes + resources.static_smem_bytes;
}

}  // namespace autotune::cli

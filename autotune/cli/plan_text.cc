#include "autotune/cli/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autotune/cli/text.h"
#include "kernels/problem.h"
#include "search/occupancy.h"

namespace autotune::cli {
namespace {

using Align = Table::Align;

// What is no rule of the check ("same_launch") comes after those.
int place_of(std::string_view name) {
  const auto rule = parse_rule(name.substr(0, name.find(':')));
  return rule ? static_cast<int>(*rule) : kRuleCount;
}

std::vector<const search::Candidate*> best_codes(const search::Plan& plan) {
  std::vector<const search::Candidate*> best;
  std::unordered_set<Config, ConfigHash> seen;
  for (const search::Candidate& each : plan.survivors) {
    if (best.size() == kRankedShown) break;
    if (seen.insert(code_of(each.config)).second) best.push_back(&each);
  }
  return best;
}

}  // namespace

std::string funnel_text(const search::Plan& plan) {
  Table table({{"", Align::left}, {"", Align::right}});
  table.add({"generated", grouped(plan.generated)});
  std::vector<std::pair<std::string, std::int64_t>> rejected(plan.rejected.begin(),
                                                             plan.rejected.end());
  std::stable_sort(rejected.begin(), rejected.end(), [](const auto& a, const auto& b) {
    return place_of(a.first) < place_of(b.first);
  });
  for (const auto& [name, count] : rejected) table.add({"  " + name, grouped(-count)});
  table.add({"survivors", grouped(static_cast<std::int64_t>(plan.survivors.size()))});
  std::string text = table.str();
  for (const std::string& reason : plan.unsupported) text += "  left out: " + reason + "\n";
  return text;
}

std::string default_text(const search::Plan& plan) {
  const search::Candidate& best = plan.default_config();
  return fmt::format("predicted {} ({} TFLOP/s)\n  {}", microseconds(best.predicted_us),
                     teraflops(tflops_of(flops(plan.problem), best.predicted_us)),
                     to_string(best.config));
}

std::string ranked_text(const search::Plan& plan, const DeviceSpec& device) {
  Table table({{"#"},
               {"predicted"},
               {"smem bytes"},
               {"threads"},
               {"registers"},
               {"blocks/SM"},
               {"config", Align::left}});
  int rank = 0;
  for (const search::Candidate* each : best_codes(plan)) {
    const Resources& needs = each->resources;
    table.add({fmt::format("{}", ++rank), microseconds(each->predicted_us), grouped(smem_of(needs)),
               fmt::format("{}", needs.threads), fmt::format("{}", needs.registers),
               fmt::format("{}", blocks_of(needs, device)), to_string(each->config)});
  }
  return table.str();
}

io::PlanRowJson plan_row(const search::Plan& plan, const DeviceSpec& device) {
  io::PlanRowJson row;
  row.problem = plan.problem;
  row.generated = plan.generated;
  row.rejected = plan.rejected;
  row.survivors = static_cast<std::int64_t>(plan.survivors.size());
  if (!plan.survivors.empty()) row.default_config = to_string(plan.default_config().config);
  for (const search::Candidate* each : best_codes(plan)) {
    const Resources& needs = each->resources;
    row.ranked.push_back({to_string(each->config), each->predicted_us, smem_of(needs),
                          needs.threads, needs.registers, blocks_of(needs, device)});
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

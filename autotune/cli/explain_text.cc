#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "autotune/cli/explanation.h"
#include "autotune/cli/plan_text.h"
#include "autotune/cli/text.h"
#include "kernels/problem.h"
#include "search/check.h"
#include "search/occupancy.h"

namespace autotune::cli {
namespace {

std::string terms_text(const std::string& title, const std::vector<Term>& terms,
                       const std::string& total) {
  Table table({{"", Table::Align::left}, {"", Table::Align::left}, {"", Table::Align::right}});
  for (const Term& term : terms) {
    table.add({term.label, term.expression, grouped(term.value)});
  }
  return fmt::format("\n{}: {}\n{}", title, total, table.str());
}

std::string smem_total(const Explanation& e) {
  const std::int64_t optin = e.device.limits.smem_optin_per_block;
  std::string text = fmt::format("{} bytes of {}", grouped(smem_of(e.resources)), grouped(optin));
  if (e.limits.max_smem > 0) {
    text += fmt::format(", capped at {}", grouped(e.limits.max_smem));
  }
  if (e.resources.static_smem_bytes > 0) {
    text += fmt::format(" ({} dynamic, {} static)", grouped(e.resources.smem_bytes),
                        grouped(e.resources.static_smem_bytes));
  }
  return text;
}

std::string registers_total(const Explanation& e) {
  const int cap =
      search::launch_register_cap(e.device.limits, e.resources.threads, e.resources.min_blocks);
  std::string text = fmt::format("about {} of {} that the launch bounds ({} threads, {}) allow",
                                 e.resources.registers, cap, e.resources.threads,
                                 counted(e.resources.min_blocks, "block"));
  const int live_cap = e.resources.role_registers > 0 ? e.resources.role_registers : cap;
  if (e.resources.register_demand > live_cap) {
    text += fmt::format("; {} live at once, so it would spill", e.resources.register_demand);
  }
  return text;
}

// "block_n 2048 -> 256, stages 2 -> 3"; or the other kernel's name.
std::string changes(const Config& from, const Config& to) {
  if (from.kernel != to.kernel) return fmt::format("kernel {}", to.kernel->name());
  std::string text;
  const auto parameters = from.kernel->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (from.values[i] == to.values[i]) continue;
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", parameters[i].name,
                        from.values[i], to.values[i]);
  }
  return text;
}

}  // namespace

std::string parameters_text(const Config& config) {
  Table table({{"", Table::Align::left}, {"", Table::Align::right}, {"", Table::Align::left}});
  const auto parameters = config.kernel->parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    table.add({std::string(parameters[i].name), std::to_string(config.values[i]),
               std::string(parameters[i].help)});
  }
  return fmt::format("\n{}", table.str());
}

std::string resources_text(const Explanation& e) {
  std::string text = terms_text("Shared memory per block", e.smem_terms, smem_total(e));
  text += terms_text("Threads per block", e.thread_terms,
                     fmt::format("{} of {}", grouped(e.resources.threads),
                                 grouped(e.device.limits.threads_per_block)));
  text += terms_text("Registers per thread", e.register_terms, registers_total(e));
  text += fmt::format("\nBlocks per SM: {}, grid: {}", e.blocks_per_sm,
                      counted(e.resources.grid, "block"));
  if (e.resources.cluster > 1) text += fmt::format(" in clusters of {}", e.resources.cluster);
  if (e.resources.cooperative) text += " that wait for each other";
  if (e.resources.workspace_bytes > 0) {
    text += fmt::format(", workspace: {} bytes", grouped(e.resources.workspace_bytes));
  }
  return text + "\n";
}

std::string verdicts_text(const Explanation& e) {
  if (e.verdicts.empty() && !e.tried_instead) return "Fits.\n";
  if (e.verdicts.empty()) {
    return fmt::format(
        "Fits. Plans try in its place what launches the very same (same_launch):\n  {}\n",
        to_string(*e.tried_instead));
  }
  std::string text = e.fits()
                         ? "Fits, but would run badly (plans leave it out without --keep-slow):\n"
                         : "Does not fit:\n";
  for (const Verdict& verdict : e.verdicts) {
    text += "  " + search::describe(verdict, e.config, e.device) + "\n";
  }
  return text;
}

std::string time_text(const Explanation& e) {
  if (e.time_terms.empty()) return "";
  Table table({{"", Table::Align::left}, {"", Table::Align::right}});
  for (const search::TimeTerm& term : e.time_terms) {
    if (term.us <= 0) continue;  // a part that this config does not have
    table.add({term.label, fmt::format("{:.2f} us", term.us)});
  }
  return fmt::format("\nPredicted time: {} ({} TFLOP/s)\n{}", microseconds(e.predicted_us),
                     teraflops(tflops_of(flops(e.problem), e.predicted_us)), table.str());
}

std::string nearest_text(const Explanation& e) {
  if (e.verdicts.empty()) return "";
  if (!e.nearest) return "\nNo config of the search space fits this problem on this GPU.\n";
  return fmt::format("\nNearest config that fits (predicted {}; {}):\n  {}\n",
                     microseconds(e.nearest->predicted_us), changes(e.config, e.nearest->config),
                     to_string(e.nearest->config));
}

}  // namespace autotune::cli

// `autotune plan`: what would be tried, in which order, and why the rest would not.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/cli/command.h"
#include "autotune/cli/device_choice.h"
#include "autotune/cli/interrupt.h"
#include "autotune/cli/plan_audit.h"
#include "autotune/cli/plan_text.h"
#include "autotune/cli/request.h"
#include "autotune/cli/text.h"
#include "autotune/io/builtin.h"
#include "kernels/stages.h"
#include "search/check.h"
#include "search/plan.h"

namespace autotune::cli {
namespace {

// `caps`: caps_text().
void print_whole(const search::Plan& plan, const DeviceSpec& device, const std::string& caps,
                 Output& output) {
  output.text(
      fmt::format("{} on {}{}\n\n{}", titled(plan.problem), device.name, caps, funnel_text(plan)));
  if (plan.survivors.empty()) return;
  output.text(
      fmt::format("\nDefault config, {}\n\nBest as predicted, each compiled code in its best order "
                  "of tiles\n{}",
                  default_text(plan), ranked_text(plan, device)));
}

// A suite's problems as one table; -v prints each plan in full instead.
class SuiteTable {
 public:
  void add(const search::Plan& plan) {
    table_.add({describe(plan.problem), grouped(plan.generated),
                grouped(static_cast<std::int64_t>(plan.survivors.size())),
                microseconds(plan.default_config().predicted_us),
                to_string(plan.default_config().config)});
  }
  void add_failure(const Problem& problem, const search::Plan& counted) {
    table_.add({describe(problem), grouped(counted.generated), "0", "-", "nothing fits"});
  }
  std::string str() const { return table_.str(); }

 private:
  Table table_{{{"problem", Table::Align::left},
                {"generated"},
                {"survivors"},
                {"predicted"},
                {"default config", Table::Align::left}}};
};

// Why a problem has no config though each of its stages has: `defaults` of those that have one.
std::optional<Error> lack_together(const std::vector<Config>& defaults, const Problem& problem,
                                   const DeviceSpec& device, const search::Limits& limits) {
  if (defaults.size() < 2) return std::nullopt;
  const auto verdict =
      search::check_memory(join(defaults[0], defaults[1]), problem, device, limits);
  return verdict ? std::optional(search::too_large(problem, device, *verdict)) : std::nullopt;
}

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options, output);
  if (!request) return tl::unexpected(request.error());
  const auto wanted = read_audit(options);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());

  const Interrupt interrupt;
  auto auditor = PlanAuditor::create(*wanted, device->spec, *limits, output);
  if (!auditor) return tl::unexpected(auditor.error());

  const bool suite = !request->suite.empty();
  const bool whole = !suite || output.verbose();
  const std::string caps = caps_text(*limits, device->spec);
  io::PlanJson document{device->spec.name, std::nullopt, {}, caps_json(*limits, device->spec)};
  const std::size_t stages = stage_count(request->problems.front());
  const bool rows = suite || stages > 1;
  if (rows) document.suite = request->suite;
  SuiteTable table;
  std::optional<Error> first;
  for (const Problem& problem : request->problems) {
    std::vector<Config> defaults;
    for (std::size_t i = 0; i < stage_count(problem); ++i) {
      if (interrupt.flag()) {
        return fail(ErrorCode::cancelled, "stopped before every problem was planned");
      }
      const Problem stage = stage_of(problem, i);
      const search::Space& own = *io::space_for(stage.family, &*space);
      search::Plan counted;
      const auto plan = search::make_plan(stage, device->spec, own, *limits, &counted);
      if (!plan) {
        io::PlanRowJson& row = document.rows.emplace_back(plan_row(counted, device->spec));
        row.problem = stage;
        row.error = plan.error().message;
        if (whole && counted.generated > 0) print_whole(counted, device->spec, caps, output);
        table.add_failure(stage, counted);
        if (!first) first = plan.error();
        continue;
      }
      defaults.push_back(plan->default_config().config);
      document.rows.push_back(plan_row(*plan, device->spec));
      table.add(*plan);
      if (whole) print_whole(*plan, device->spec, caps, output);
      if (output.quiet()) {
        output.result(stage_label(stage, stages) + document.rows.back().default_config + "\n");
      }
      const auto audited = auditor->audit(*plan, own, interrupt.flag(), document.rows.back());
      if (!audited) return tl::unexpected(audited.error());
    }
    if (const auto lack = lack_together(defaults, problem, device->spec, *limits)) {
      document.rows.back().error = lack->message;
      if (!first) first = lack;
    }
  }
  if (!whole) {
    output.text(
        fmt::format("{} on {}{}\n{}", request->suite, device->spec.name, caps, table.str()));
  }
  if (const auto done = output.json(document); !done) return tl::unexpected(done.error());
  if (!auditor->clean()) return kExitFailed;
  if (first) return tl::unexpected(*std::move(first));
  return kExitDone;
}

}  // namespace

const Command kPlanCommand = {
    "plan",
    "Generate, prune and rank the configs of a problem; needs no GPU",
    "  autotune plan gemm --m 4096 --n 4096 --k 4096 --device nvidia-h200\n"
    "  autotune plan gemm --m 4096 --n 4096 --k 4096 --device 'NVIDIA Thor' --compile 200 --audit "
    "200\n"
    "  autotune plan gemm --m 100 --n 1524 --k 512 --device nvidia-l40s --max-smem 32768\n"
    "  autotune plan geglu_mlp --tokens 100 --hidden 512 --intermediate 1524 --device nvidia-h200\n"
    "  autotune plan --suite gemm --device nvidia-h200 --exclude 'mma:stages=2' --json plan.json",
    kFamily | kSuite | kProblem | kDevice | kSpace | kMaxSms | kPlan | kJobs | kSeed | kOutput,
    run,
};

}  // namespace autotune::cli

// `autotune plan`: what would be tried, in which order, and why the rest would not.
#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
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

// The plans of a request, one problem after another. The references must outlive it.
class Planner {
 public:
  Planner(const Request& request, const DeviceSpec& device, const search::Space& space,
          const search::Limits& limits, PlanAuditor& auditor, Output& output)
      : device_(device),
        space_(space),
        limits_(limits),
        auditor_(auditor),
        output_(output),
        suite_(request.suite),
        stages_(stage_count(request.problems.front())),
        caps_(caps_text(limits)),
        document_{device.name, std::nullopt, {}, caps_json(limits)} {
    if (!suite_.empty() || stages_ > 1) document_.suite = suite_;
  }

  // Errors: cancelled, or what kept the audit from its work. Where nothing fits is no error yet.
  Expected<void> add(const Problem& problem, const std::atomic<bool>& stop) {
    std::vector<Config> defaults;
    for (std::size_t i = 0; i < stages_; ++i) {
      if (stop) return fail(ErrorCode::cancelled, "stopped before every problem was planned");
      const auto config = add_stage(stage_of(problem, i), stop);
      if (!config) return tl::unexpected(config.error());
      if (*config) defaults.push_back(**config);
    }
    if (const auto lack = lack_together(defaults, problem, device_, limits_)) {
      document_.rows.back().error = lack->message;
      if (!nothing_fits_) nothing_fits_ = lack;
    }
    return {};
  }

  // Errors: nothing_fits, where that was so for one of them; of writing JSON.
  Expected<int> finish() {
    if (!in_full()) {
      output_.text(fmt::format("{} on {}{}\n{}", suite_, device_.name, caps_, table_.str()));
    }
    if (const auto done = output_.json(document_); !done) return tl::unexpected(done.error());
    if (!auditor_.clean()) return kExitFailed;
    if (nothing_fits_) return tl::unexpected(*nothing_fits_);
    return kExitDone;
  }

 private:
  bool in_full() const { return suite_.empty() || output_.verbose(); }

  // The default config; none where nothing fits.
  Expected<std::optional<Config>> add_stage(const Problem& stage, const std::atomic<bool>& stop) {
    const search::Space& space = *io::space_for(stage.family, &space_);
    search::Plan counted;
    const auto plan = search::make_plan(stage, device_, space, limits_, &counted);
    if (!plan) {
      add_failure(stage, counted, plan.error());
      return std::nullopt;
    }
    document_.rows.push_back(plan_row(*plan, device_));
    table_.add(*plan);
    if (in_full()) print_whole(*plan, device_, caps_, output_);
    if (output_.quiet()) {
      output_.result(stage_label(stage, stages_) + document_.rows.back().default_config + "\n");
    }
    const auto audited = auditor_.audit(*plan, space, stop, document_.rows.back());
    if (!audited) return tl::unexpected(audited.error());
    return plan->default_config().config;
  }

  void add_failure(const Problem& stage, const search::Plan& counted, const Error& error) {
    io::PlanRowJson& row = document_.rows.emplace_back(plan_row(counted, device_));
    row.problem = stage;
    row.error = error.message;
    if (in_full() && counted.generated > 0) print_whole(counted, device_, caps_, output_);
    table_.add_failure(stage, counted);
    if (!nothing_fits_) nothing_fits_ = error;
  }

  const DeviceSpec& device_;
  const search::Space& space_;
  const search::Limits& limits_;
  PlanAuditor& auditor_;
  Output& output_;
  std::string suite_;  // empty: one problem
  std::size_t stages_;
  std::string caps_;
  io::PlanJson document_;
  SuiteTable table_;
  std::optional<Error> nothing_fits_;  // the first such
};

Expected<int> run(const Options& options, Output& output) {
  const auto request = read_request(options, output);
  if (!request) return tl::unexpected(request.error());
  const auto wanted = read_audit(options);
  if (!wanted) return tl::unexpected(wanted.error());
  auto limits = read_limits(options, *request->family);
  if (!limits) return tl::unexpected(limits.error());
  const auto space = read_space(options, *request->family);
  if (!space) return tl::unexpected(space.error());
  const auto device = choose_device(options, Need::description);
  if (!device) return tl::unexpected(device.error());
  drop_idle_cap(*limits, device->spec);

  const Interrupt interrupt;
  auto auditor = PlanAuditor::create(*wanted, device->spec, *limits, output);
  if (!auditor) return tl::unexpected(auditor.error());

  Planner planner(*request, device->spec, *space, *limits, *auditor, output);
  for (const Problem& problem : request->problems) {
    if (const auto added = planner.add(problem, interrupt.flag()); !added) {
      return tl::unexpected(added.error());
    }
  }
  return planner.finish();
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

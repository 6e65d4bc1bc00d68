#include "autotune/cli/plan_audit.h"

#include <fmt/format.h>

#include <utility>

#include "autotune/cli/request.h"
#include "autotune/cli/status_line.h"
#include "autotune/cli/text.h"
#include "kernels/problem.h"

namespace autotune::cli {
namespace {

// What one person can mean by a sample; "all" is the word for more.
constexpr std::uint64_t kLargestSample = 10'000'000;

std::string compile_text(const search::Plan& plan, const DeviceSpec& device,
                         const tune::AuditReport& report) {
  std::string text = fmt::format(
      "Compiled {} of {} for {} in {}: {} failed, {}, {}\n", grouped(report.compiled),
      counted(static_cast<std::int64_t>(plan.survivors.size()), "survivor"), device.limits.arch,
      duration(report.seconds), report.failed, counted(report.mismatches, "mismatch"),
      counted(report.false_passes, "false pass"));
  if (report.registers.samples > 0) {
    text += fmt::format(
        "  register estimate: off by {:.0f} (median), {:.0f} (90 %); predicted spills: {}, of "
        "which {} spill; {} not predicted\n",
        report.registers.median, report.registers.p90, report.spill_predicted, report.spill_right,
        counted(report.spill_missed, "spill"));
  }
  return text;
}

}  // namespace

Expected<AuditRequest> read_audit(const Options& options) {
  AuditRequest request;
  request.compile = !options.compile.empty();
  request.audit = !options.audit.empty();
  if (options.compile == "all") {
    request.options.survivors = -1;
  } else if (request.compile) {
    const auto count = read_count("--compile", options.compile, 1, kLargestSample);
    if (!count) return fail(ErrorCode::bad_input, count.error().message + ", or 'all'");
    request.options.survivors = static_cast<int>(*count);
  }
  if (request.audit) {
    const auto count = read_count("--audit", options.audit, 1, kLargestSample);
    if (!count) return tl::unexpected(count.error());
    request.options.rejects = static_cast<int>(*count);
  }
  const auto jobs = read_jobs(options);
  if (!jobs) return tl::unexpected(jobs.error());
  request.jobs = *jobs;
  const auto seed = read_seed(options);
  if (!seed) return tl::unexpected(seed.error());
  request.options.seed = *seed;
  return request;
}

Expected<PlanAuditor> PlanAuditor::create(const AuditRequest& request, const DeviceSpec& device,
                                          const search::Limits& limits, Output& output) {
  PlanAuditor auditor(request, device, limits, output);
  if (!request.any()) return auditor;
  auto executable = worker::find_executable({});
  if (!executable) return tl::unexpected(executable.error());
  worker::WorkerOptions options;
  options.executable = *std::move(executable);
  auto pool = worker::CompilePool::start(options, request.jobs);
  if (!pool) return tl::unexpected(pool.error());
  auditor.pool_ = *std::move(pool);
  return auditor;
}

Expected<void> PlanAuditor::audit(const search::Plan& plan, const search::Space& space,
                                  const std::atomic<bool>& stop, io::PlanRowJson& row) {
  if (!request_.any()) return {};
  StatusLine line(output_);
  const auto report = tune::audit(
      plan, device_, space, limits_, request_.options, *pool_, memo_,
      [&](std::int64_t done, std::int64_t total) {
        line.draw(fmt::format("compiled {}/{} for {}", done, total, device_.limits.arch));
      },
      stop);
  line.clear();
  if (!report) return tl::unexpected(report.error());
  print(plan, *report);
  if (request_.compile) {
    row.compile = {report->compiled, report->failed, report->mismatches, report->seconds};
  }
  if (request_.audit) {
    row.audit = {report->sampled, report->false_passes, report->false_rejects};
  }
  clean_ = clean_ && report->clean();
  return {};
}

void PlanAuditor::print(const search::Plan& plan, const tune::AuditReport& report) {
  output_.text(fmt::format("\n{}:\n", describe(plan.problem)));
  if (request_.compile) output_.text(compile_text(plan, device_, report));
  if (request_.audit) {
    output_.text(fmt::format("Audited {}: {}\n", counted(report.sampled, "rejected config"),
                             counted(report.false_rejects, "false reject")));
  }
  for (const std::string& finding : report.findings) output_.result("  " + finding + "\n");
}

}  // namespace autotune::cli

// `plan --compile` and `--audit`: is what the plan says true of the compiler's output?
#pragma once

#include <atomic>
#include <optional>

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/io/json.h"
#include "autotune/tune/audit.h"
#include "autotune/types.h"
#include "autotune/worker/pool.h"
#include "search/plan.h"

namespace autotune::cli {

// What was asked for.
struct AuditRequest {
  bool compile = false;  // --compile
  bool audit = false;    // --audit
  int jobs = 0;
  tune::AuditOptions options;

  bool any() const { return compile || audit; }
};
Expected<AuditRequest> read_audit(const Options& options);

// Audits one plan after another with one pool of compilers. The references must outlive it.
class PlanAuditor {
 public:
  // Starts nothing where nothing was asked for. Errors: no_compiler, failed.
  static Expected<PlanAuditor> create(const AuditRequest& request, const DeviceSpec& device,
                                      const search::Limits& limits, Output& output);

  // Prints what was found and fills the row's `compile` and `audit`.
  Expected<void> audit(const search::Plan& plan, const search::Space& space,
                       const std::atomic<bool>& stop, io::PlanRowJson& row);

  // No audit so far found anything.
  bool clean() const { return clean_; }

 private:
  PlanAuditor(const AuditRequest& request, const DeviceSpec& device, const search::Limits& limits,
              Output& output)
      : request_(request), device_(device), limits_(limits), output_(output) {}

  void print(const search::Plan& plan, const tune::AuditReport& report);

  AuditRequest request_;
  const DeviceSpec& device_;
  const search::Limits& limits_;
  Output& output_;
  std::optional<worker::CompilePool> pool_;
  tune::CompiledMemo memo_;
  bool clean_ = true;
};

}  // namespace autotune::cli

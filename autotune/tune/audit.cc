#include "autotune/tune/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "autotune/tune/code.h"
#include "kernels/problem.h"
#include "search/check.h"

namespace autotune::tune {
namespace {

using std::chrono::milliseconds;

enum class Kind : std::uint8_t {
  survivor,
  reject,
  spill,  // rejected because it is expected to spill
};

struct Probe {
  Kind kind;
  Config config;
  Resources needed;
  Verdict verdict;  // of a reject
};

// Rows of what is not tight lie further apart; C is held once, even where it is read and written.
double held_bytes(const Problem& problem) {
  const auto rows = [](std::int64_t count, std::int64_t pitch) {
    return static_cast<double>(count) * static_cast<double>(pitch);
  };
  const double a = rows(a_is_k_major(problem.layout) ? problem.m : problem.k, problem.lda);
  const double b = rows(b_is_k_major(problem.layout) ? problem.n : problem.k, problem.ldb);
  return (a + (is_gated(problem) ? 2 : 1) * b) * storage_bytes(problem.dtype) +
         rows(problem.m, problem.ldc) * storage_bytes(problem.out_dtype);
}

// Rules about the launch as a whole are not in any cubin; they are added up again here.
std::optional<bool> really_exceeds(const Probe& probe, const Problem& problem,
                                   const DeviceSpec& device) {
  if (probe.verdict.rule == Rule::grid) {
    return probe.needed.grid > std::numeric_limits<std::int32_t>::max();
  }
  if (probe.verdict.rule == Rule::memory) {
    return held_bytes(problem) + static_cast<double>(probe.needed.workspace_bytes) >
           static_cast<double>(device.dram_bytes);
  }
  return std::nullopt;
}

class Audit {
 public:
  Audit(const search::Plan& plan, const DeviceSpec& device, const search::Space& space,
        const search::Limits& limits, const AuditOptions& options)
      : plan_(plan),
        device_(device),
        space_(space),
        limits_(limits),
        options_(options),
        traits_(traits_of(plan.problem)) {}

  void sample() {
    for (const auto& [config, resources, predicted_us] :
         search::sample_survivors(plan_, options_.survivors, options_.seed)) {
      probes_.push_back({Kind::survivor, config, resources, {}});
    }
    if (options_.rejects <= 0) return;
    for (const auto& [config, verdict] : search::sample_rejects(
             plan_.problem, device_, space_, limits_, options_.rejects, options_.seed)) {
      probes_.push_back({Kind::reject, config, resources_of(config), verdict});
    }
    sample_spills();
  }

  Expected<void> compile(worker::CompilePool& pool, CompiledMemo& memo,
                         const AuditProgress& progress, const std::atomic<bool>& stop) {
    const auto total = static_cast<std::int64_t>(probes_.size());
    const std::size_t window = 4 * static_cast<std::size_t>(pool.jobs());
    std::map<std::uint64_t, std::string> at_work;  // request -> key
    std::size_t next = 0;
    std::int64_t done = 0;
    while (next < probes_.size() || !at_work.empty()) {
      if (stop) {
        pool.cancel();
        for (const auto& [id, key] : at_work) memo.erase(key);
        return fail(ErrorCode::cancelled, "stopped before every sampled config was compiled");
      }
      for (; next < probes_.size() && at_work.size() < window; ++next) {
        const std::string key = key_of(probes_[next].config);
        // One placeholder per key: the same code is compiled once.
        if (!memo.emplace(key, worker::CompileReply()).second) {
          progress(++done, total);
          continue;
        }
        at_work.emplace(next, key);
        pool.submit(compile_request(next, probes_[next].config, traits_, device_));
      }
      auto replies = pool.poll(milliseconds(100));
      if (!replies) {
        for (const auto& [id, key] : at_work) memo.erase(key);
        return tl::unexpected(replies.error());
      }
      for (worker::CompileReply& reply : *replies) {
        reply.cubin.clear();
        const auto found = at_work.find(reply.id);
        memo[found->second] = std::move(reply);
        at_work.erase(found);
        progress(++done, total);
      }
    }
    return {};
  }

  AuditReport judge_all(const CompiledMemo& memo) {
    for (const Probe& probe : probes_) {
      const worker::CompileReply& reply = memo.at(key_of(probe.config));
      switch (probe.kind) {
        case Kind::survivor:
          survivor(probe, reply);
          break;
        case Kind::reject:
          reject(probe, reply);
          break;
        case Kind::spill:
          if (reply.outcome != Outcome::ok) break;
          ++report_.spill_predicted;
          if (reply.actual.spills()) ++report_.spill_right;
          break;
      }
    }
    summarise_registers();
    return std::move(report_);
  }

 private:
  Resources resources_of(const Config& config) const {
    return config.kernel->resources(config, plan_.problem, device_, limits_.max_sms);
  }

  std::string key_of(const Config& config) const {
    return device_.limits.arch + " " + source_hash(config, traits_, device_);
  }

  // The quality rule's own sample: what would survive if it were off.
  void sample_spills() {
    if (limits_.keep_slow) return;
    search::Limits off = limits_;
    off.keep_slow = true;
    auto all = search::make_plan(plan_.problem, device_, space_, off);
    if (!all) return;
    std::erase_if(all->survivors, [this](const search::Candidate& candidate) {
      const auto verdict =
          search::check(candidate.config, plan_.problem, traits_, device_, limits_, nullptr);
      return !verdict || verdict->rule != Rule::predicted_spill;
    });
    const int count = std::max(1, options_.rejects / 4);
    for (const auto& [config, resources, predicted_us] :
         search::sample_survivors(*all, count, options_.seed)) {
      probes_.push_back({Kind::spill, config, resources, {}});
    }
  }

  void find(const Probe& probe, const std::string& what) {
    report_.findings.push_back(to_string(probe.config) + ": " + what);
  }

  void survivor(const Probe& probe, const worker::CompileReply& reply) {
    ++report_.compiled;
    if (reply.outcome != Outcome::ok) {
      ++report_.failed;
      find(probe, fmt::format("survived, but does not compile ({}): {}", to_string(reply.outcome),
                              reply.log));
      return;
    }
    if (const std::string differs = search::mismatch(probe.needed, reply.actual);
        !differs.empty()) {
      ++report_.mismatches;
      find(probe, differs);
    }
    if (const auto verdict = search::check_compiled(probe.needed, reply.actual, device_)) {
      ++report_.false_passes;
      find(probe, "survived, but cannot run: " + describe(*verdict, device_));
    }
    if (reply.actual.spills()) ++report_.spill_missed;
    register_errors_.push_back(std::abs(probe.needed.registers - reply.actual.registers));
  }

  void reject(const Probe& probe, const worker::CompileReply& reply) {
    ++report_.sampled;
    const auto exceeds = really_exceeds(probe, plan_.problem, device_);
    const bool compiles = reply.outcome == Outcome::ok;
    const bool runs =
        exceeds ? !*exceeds
                : compiles && !search::check_compiled(probe.needed, reply.actual, device_);
    if (!runs) return;
    ++report_.false_rejects;
    find(probe,
         "was rejected, but can run: " + search::describe(probe.verdict, probe.config, device_));
  }

  void summarise_registers() {
    std::vector<int>& errors = register_errors_;
    if (errors.empty()) return;
    std::sort(errors.begin(), errors.end());
    const auto at = [&errors](double share) {
      return errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1) + 0.5)];
    };
    report_.registers = {static_cast<std::int64_t>(errors.size()), static_cast<double>(at(0.5)),
                         static_cast<double>(at(0.9))};
  }

  const search::Plan& plan_;
  const DeviceSpec& device_;
  const search::Space& space_;
  const search::Limits& limits_;
  const AuditOptions& options_;
  KernelTraits traits_;
  std::vector<Probe> probes_;
  std::vector<int> register_errors_;
  AuditReport report_;
};

}  // namespace

Expected<AuditReport> audit(const search::Plan& plan, const DeviceSpec& device,
                            const search::Space& space, const search::Limits& limits,
                            const AuditOptions& options, worker::CompilePool& pool,
                            CompiledMemo& memo, const AuditProgress& progress,
                            const std::atomic<bool>& stop) {
  const auto start = std::chrono::steady_clock::now();
  Audit audit(plan, device, space, limits, options);
  audit.sample();
  if (auto compiled = audit.compile(pool, memo, progress, stop); !compiled) {
    return tl::unexpected(compiled.error());
  }
  AuditReport report = audit.judge_all(memo);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace autotune::tune

#include "autotune/tune/bench.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "autotune/tune/code.h"
#include "autotune/tune/workers.h"
#include "kernels/stages.h"
#include "search/check.h"

namespace autotune::tune {
namespace {

class Bench {
 public:
  Bench(const std::vector<BenchItem>& items, const DeviceSpec& device, const BenchOptions& options,
        worker::MeasureWorker& measurer, CodeSource& code, const std::atomic<bool>& stop)
      : items_(items),
        device_(device),
        options_(options),
        measurer_(measurer),
        code_(code),
        stop_(stop),
        limits_(options.limits) {
    limits_.keep_slow = true;
  }

  // Checks every item and has its code made; nothing that cannot run is compiled.
  void prepare() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const BenchItem& item = items_[i];
      BenchRow row;
      row.problem = item.problem;
      row.config = item.config;
      check(i, Side::ours, row);
      if (item.baseline && row.outcome == Outcome::ok) check(i, Side::other, row);
      if (row.outcome == Outcome::ok) {
        want(i, Side::ours);
        if (item.baseline) want(i, Side::other);
      }
      rows_.push_back(std::move(row));
    }
  }

  Expected<std::vector<BenchRow>> run(const BenchObserver& observer) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (auto timed = row(i); !timed) return tl::unexpected(timed.error());
      observer(rows_[i]);
      code_.save(1);
    }
    while (!code_.saved()) code_.save(1);
    return std::move(rows_);
  }

 private:
  static constexpr std::chrono::milliseconds kTick{50};

  tl::unexpected<Error> stopped() const {
    return fail(ErrorCode::cancelled, "stopped before every config was timed");
  }

  enum class Side : std::size_t { ours, other };

  // Of the code of one kernel.
  static std::uint64_t ticket(std::size_t item, Side side, std::size_t stage) {
    return (2 * item + static_cast<std::size_t>(side)) * kMostStages + stage;
  }

  const Config& config_of(std::size_t item, Side side) const {
    return side == Side::ours ? items_[item].config : *items_[item].baseline;
  }

  // The row's item does not run, for this reason.
  void refuse(std::size_t item, Side side, Outcome outcome, const std::string& why,
              BenchRow& row) const {
    row.outcome = outcome;
    row.log = why;
    if (side == Side::other) {
      row.log = fmt::format("the baseline {}: {}", to_string(*items_[item].baseline), why);
    }
  }

  // What each kernel needs; where one cannot run, the row says why.
  void check(std::size_t item, Side side, BenchRow& row) {
    for (std::size_t i = 0; i < stage_count(row.problem); ++i) {
      const Problem problem = stage_of(row.problem, i);
      const Config config = stage_of(config_of(item, side), i);
      const KernelTraits traits = traits_of(problem);
      const std::string refused = config.kernel->unsupported(traits, device_);
      if (!refused.empty()) {
        refuse(item, side, Outcome::pruned,
               std::string(config.kernel->name()) + " cannot serve this problem: " + refused, row);
        return;
      }
      Resources& needed = needed_[ticket(item, side, i)];
      row.verdict = search::check(config, problem, traits, device_, limits_, &needed);
      if (row.verdict) {
        refuse(item, side, Outcome::pruned, search::describe(*row.verdict, config, device_), row);
        return;
      }
    }
  }

  void want(std::size_t item, Side side) {
    const Problem& problem = items_[item].problem;
    for (std::size_t i = 0; i < stage_count(problem); ++i) {
      const KernelTraits traits = traits_of(stage_of(problem, i));
      const Config config = stage_of(config_of(item, side), i);
      code_.want(ticket(item, side, i), config, traits, source_hash(config, traits, device_));
    }
  }

  Expected<CodePtr> code_of(std::uint64_t ticket) {
    while (!made_.contains(ticket)) {
      if (stop_) return stopped();
      auto arrived = code_.poll(kTick);
      if (!arrived) return tl::unexpected(arrived.error());
      made_.insert(arrived->begin(), arrived->end());
    }
    CodePtr code = std::move(made_.at(ticket));
    made_.erase(ticket);
    return code;
  }

  // False where it cannot be launched, which the row then says.
  Expected<bool> add_contender(std::size_t item, Side side, BenchRow& row,
                               worker::CompareRequest& request) {
    worker::Contender contender;
    contender.config = to_string(config_of(item, side));
    for (std::size_t i = 0; i < stage_count(row.problem); ++i) {
      const std::uint64_t of = ticket(item, side, i);
      const auto code = code_of(of);
      if (!code) return tl::unexpected(code.error());
      if ((*code)->outcome != Outcome::ok) {
        refuse(item, side, (*code)->outcome, (*code)->log, row);
        return false;
      }
      const Config config = stage_of(config_of(item, side), i);
      const auto verdict = judge(config, needed_[of], (*code)->actual, device_);
      if (!verdict) return tl::unexpected(verdict.error());
      if ((row.verdict = *verdict)) {
        refuse(item, side, Outcome::over_budget, search::describe(*row.verdict, config, device_),
               row);
        return false;
      }
      (i == 0 ? contender.cubin : contender.second_cubin) = (*code)->image;
    }
    request.contenders.push_back(std::move(contender));
    return true;
  }

  Expected<void> row(std::size_t i) {
    const BenchItem& item = items_[i];
    BenchRow& row = rows_[i];
    if (row.outcome == Outcome::pruned) return {};
    worker::CompareRequest request;
    request.id = i;
    request.problem = row.problem;
    for (const Side side : {Side::ours, Side::other}) {
      if (side == Side::other && !item.baseline) continue;
      const auto added = add_contender(i, side, row, request);
      if (!added) return tl::unexpected(added.error());
      if (!*added) return {};
    }
    if (stop_) return stopped();
    request.baseline = options_.baseline && !item.baseline;
    request.rounds = options_.rounds;
    request.most_rounds = options_.most_rounds;
    request.sustain_s = options_.sustain_s;
    request.options.seed = options_.seed;
    request.options.max_sms = limits_.max_sms;
    const auto reply = measurer_.compare(request);
    if (!reply) return tl::unexpected(reply.error());
    take(i, *reply, row);
    if (row.outcome != Outcome::ok || row.measurement.median_us <= 0) return {};
    const double floor =
        floor_us(device_, row.problem.dtype, flops(row.problem), compulsory_bytes(row.problem),
                 &row.floor_measured, row.problem.exact_fp32);
    row.floor_percent = 100 * floor / row.measurement.median_us;
    return {};
  }

  void take(std::size_t item, const worker::CompareReply& reply, BenchRow& row) const {
    row.outcome = reply.outcome;
    row.log = reply.log;
    if (reply.outcome != Outcome::ok) return;
    const worker::Side& ours = reply.sides.front();
    const worker::Side& other = reply.sides.back();
    row.measurement = ours.measurement;
    for (const Side side : {Side::ours, Side::other}) {
      const worker::Side& seen = side == Side::ours ? ours : other;
      if (seen.outcome == Outcome::ok) continue;
      row.verdict = seen.verdict;
      refuse(item, side, seen.outcome, seen.log, row);
      return;
    }
    if (reply.sides.size() < 2) return;
    const bool config = items_[item].baseline.has_value();
    row.baseline = Baseline{config ? to_string(*items_[item].baseline) : reply.baseline,
                            other.measurement.median_us, reply.baseline_candidates};
    row.speedup = other.ratio;
    row.speedup_lo = other.ratio_lo;
    row.speedup_hi = other.ratio_hi;
  }

  const std::vector<BenchItem>& items_;
  const DeviceSpec& device_;
  const BenchOptions& options_;
  worker::MeasureWorker& measurer_;
  CodeSource& code_;
  const std::atomic<bool>& stop_;
  search::Limits limits_;
  std::vector<BenchRow> rows_;
  // By ticket.
  std::map<std::uint64_t, Resources> needed_;
  std::map<std::uint64_t, CodePtr> made_;  // code that came before its turn
};

}  // namespace

Expected<std::vector<BenchRow>> bench(const std::vector<BenchItem>& items, const DeviceSpec& device,
                                      int device_index, const BenchOptions& options,
                                      cache::Store* store, const BenchObserver& observer,
                                      const std::atomic<bool>& stop) {
  if (items.empty()) return {};
  const auto sustained = std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(options.sustain_s));
  auto workers = start_workers(options.worker, options.jobs, device_index, sustained);
  if (!workers) return tl::unexpected(workers.error());
  auto compiler = workers->pool.compiler();
  if (!compiler) return tl::unexpected(compiler.error());
  CodeMemory memory;
  // A cache that cannot keep a cubin costs nothing here but time in the next run.
  CodeSource code(workers->pool, memory, store, device, std::move(*compiler), [](const Error&) {});
  Bench bench(items, device, options, workers->measurer, code, stop);
  bench.prepare();
  return bench.run(observer);
}

}  // namespace autotune::tune

#include "autotune/tune/bench.h"

#include <map>
#include <utility>

#include "autotune/tune/code.h"
#include "autotune/tune/workers.h"
#include "kernels/problem.h"
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
        stop_(stop) {
    limits_.keep_slow = true;  // whoever names a config wants it timed
    limits_.max_sms = options.max_sms;
  }

  // Checks every item and has its code made; nothing that cannot run is compiled.
  void prepare() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const auto& [problem, config] = items_[i];
      const KernelTraits traits = traits_of(problem);
      BenchRow row;
      row.problem = problem;
      row.config = config;
      Resources needed;
      const std::string refused = config.kernel->unsupported(traits, device_);
      if (!refused.empty()) {
        row.outcome = Outcome::pruned;
        row.log = std::string(config.kernel->name()) + " cannot serve this problem: " + refused;
      } else {
        row.verdict = search::check(config, problem, traits, device_, limits_, &needed);
        if (row.verdict) {
          row.outcome = Outcome::pruned;
          row.log = search::describe(*row.verdict, config, device_);
        } else {
          code_.want(i, config, traits, source_hash(config, traits, device_));
        }
      }
      rows_.push_back(std::move(row));
      needed_.push_back(needed);
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

  Expected<CodePtr> code_of(std::size_t i) {
    while (!made_.contains(i)) {
      if (stop_) return stopped();
      auto arrived = code_.poll(kTick);
      if (!arrived) return tl::unexpected(arrived.error());
      made_.insert(arrived->begin(), arrived->end());
    }
    CodePtr code = std::move(made_.at(i));
    made_.erase(i);
    return code;
  }

  Expected<void> row(std::size_t i) {
    BenchRow& row = rows_[i];
    if (row.outcome == Outcome::pruned) return {};
    const auto code = code_of(i);
    if (!code) return tl::unexpected(code.error());
    if ((*code)->outcome != Outcome::ok) {
      row.outcome = (*code)->outcome;
      row.log = (*code)->log;
      return {};
    }
    const auto verdict = judge(row.config, needed_[i], (*code)->actual, device_);
    if (!verdict) return tl::unexpected(verdict.error());
    if ((row.verdict = *verdict)) {
      row.outcome = Outcome::over_budget;
      row.log = search::describe(*row.verdict, row.config, device_);
      return {};
    }
    auto timed = options_.baseline ? compare(i, **code) : measure(i, **code);
    if (!timed) return timed;
    if (row.outcome != Outcome::ok || row.measurement.median_us <= 0) return {};
    const double floor =
        floor_us(device_, row.problem.dtype, flops(row.problem), compulsory_bytes(row.problem),
                 &row.floor_measured, row.problem.exact_fp32);
    row.floor_percent = 100 * floor / row.measurement.median_us;
    return {};
  }

  worker::MeasureOptions measure_options() const {
    worker::MeasureOptions options;
    options.seed = options_.seed;
    options.max_sms = options_.max_sms;
    return options;
  }

  Expected<void> measure(std::size_t i, const Code& code) {
    BenchRow& row = rows_[i];
    worker::MeasureRequest request;
    request.id = i;
    request.problem = row.problem;
    request.config = to_string(row.config);
    request.cubin = code.image;
    request.actual = code.actual;
    request.options = measure_options();
    measurer_.submit(request);
    while (true) {
      if (stop_) return stopped();
      auto reply = measurer_.poll(kTick);
      if (!reply) return tl::unexpected(reply.error());
      if (!*reply) continue;
      row.outcome = (*reply)->outcome;
      row.verdict = (*reply)->verdict;
      row.measurement = (*reply)->measurement;
      row.log = std::move((*reply)->log);
      return {};
    }
  }

  Expected<void> compare(std::size_t i, const Code& code) {
    if (stop_) return stopped();
    BenchRow& row = rows_[i];
    worker::CompareRequest request;
    request.id = i;
    request.problem = row.problem;
    request.config_a = to_string(row.config);
    request.cubin_a = code.image;
    request.baseline = true;
    request.pairs = options_.pairs;
    request.sustain_s = options_.sustain_s;
    request.options = measure_options();
    const auto reply = measurer_.compare(request);
    if (!reply) return tl::unexpected(reply.error());
    row.outcome = reply->outcome;
    row.log = reply->log;
    row.measurement = reply->a;
    if (reply->outcome != Outcome::ok) return {};
    row.baseline =
        Baseline{reply->name_b, reply->b.median_us, reply->candidates_b, reply->b.result_error};
    row.speedup = reply->ratio;
    row.speedup_lo = reply->ratio_lo;
    row.speedup_hi = reply->ratio_hi;
    return {};
  }

  const std::vector<BenchItem>& items_;
  const DeviceSpec& device_;
  const BenchOptions& options_;
  worker::MeasureWorker& measurer_;
  CodeSource& code_;
  const std::atomic<bool>& stop_;
  search::Limits limits_;
  std::vector<BenchRow> rows_;
  std::vector<Resources> needed_;
  std::map<std::uint64_t, CodePtr> made_;  // code that came before its turn
};

}  // namespace

Expected<std::vector<BenchRow>> bench(const std::vector<BenchItem>& items, const DeviceSpec& device,
                                      int device_index, const BenchOptions& options,
                                      cache::Store* store, const BenchObserver& observer,
                                      const std::atomic<bool>& stop) {
  auto workers = start_workers(options.worker, options.jobs, device_index);
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

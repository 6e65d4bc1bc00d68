// The performance model: how long a config should take on a device, from the host twin's work
// terms.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "search/model_memory.h"

namespace autotune::search {

// One term of the prediction in microseconds, for `explain`.
struct TimeTerm {
  std::string label;
  double us;
};

namespace model_parts {

struct Machine {
  double sms;
  double clocks_per_us;
  double flops_per_clock;       // of one SM
  double dram_bytes_per_clock;  // of the whole device
};

// How the blocks of the launch spread over the SMs.
struct Waves {
  double resident;  // blocks on one SM at once
  double full;      // waves that fill every SM
  double tail;      // blocks on the fullest SM of the last wave, 0 where there is none
  double k_steps;   // k tiles of one block
  double count() const { return full + (tail > 0 ? 1 : 0); }
};

// Clocks that one k tile of one block keeps each unit of its SM busy.
struct Step {
  double multiply;
  double smem;
  double l2;
  double issue;
  double warp_issue;  // as far as one warp takes for its own copies
  double in_flight;   // k tiles whose loads are under way at once
};

// Clocks for one k tile of each of some blocks on an SM.
struct Residents {
  double blocks;
  double busy;  // if loads came at once
};

}  // namespace model_parts

// What one code takes in each order of its tiles, by one preparation: how long that code takes from
// launch to end on an otherwise idle device. Good for ranking; the absolute error is tens of
// percent.
class CodeModel {
 public:
  // `resources` is the check's prediction; `max_sms` > 0 caps the SMs.
  CodeModel(const Work& work, const Problem& problem, const DeviceSpec& device,
            const Resources& resources, int max_sms);

  // Microseconds.
  double us(TileOrder order);
  // No order takes less.
  double least_us() const;
  // As predict_terms.
  std::vector<TimeTerm> terms(TileOrder order) const;

 private:
  using Shared = MemoryModel::Shared;

  double total_us(const Shared& shared) const;
  double main_loop_us(const Shared& shared) const;
  double clocks_beyond_sms(const Shared& shared) const;
  double clocks_between_loads(double blocks, double dram) const;

  model_parts::Machine machine_;
  model_parts::Waves waves_;
  MemoryModel memory_;
  model_parts::Step step_;
  model_parts::Residents full_;
  model_parts::Residents tail_;
  double sides_bytes_per_clock_;
  double loads_;         // bytes that all blocks fetch
  double l2_latency_;    // clocks for each k tile, what its warps wait for beside it included
  double dram_latency_;  // clocks, on top of it
  double launch_us_;
  double pack_us_ = 0;
  double fill_us_;
  double epilogue_us_;
  double reduction_us_ = 0;
  Shared last_{-1, 0, 0, 0};  // of the order that was asked about last, and its time
  double us_ = 0;
};

// The same for a single config.
double predict_us(const Config& config, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms);

// The same where the work is known already: config.kernel->work(config, problem, device).
double predict_us(const Work& work, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms);

// First what adds up to the prediction (launch, packing, fill, main loop, epilogue, split-k
// reduction), then "total", then what the main loop would take if it were bound by one unit alone
// ("alone: ...").
std::vector<TimeTerm> predict_terms(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Resources& resources,
                                    int max_sms);

}  // namespace autotune::search

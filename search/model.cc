// The whole cost model. A k tile costs what the busiest unit of the SM needs for it; blocks on one
// SM share its units and hide each other's waits; waves of blocks follow each other; the whole
// cannot be faster than DRAM, the L2's two sides and the ways to the GPCs deliver. Inside, time is
// in SM clocks.
#include "search/model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "search/occupancy.h"

namespace autotune::search {
namespace {

using namespace model_parts;

constexpr double kSmemBytesPerInstruction = 512;  // 16 bytes per lane
constexpr double kIssuesPerClock = 4;             // one per sub-partition
constexpr double kUnknownTflops = 1;              // where a device file knows no rate at all
// More bytes from DRAM never take less time but for what rounding does to the last digits.
constexpr double kRounding = 1 - 1e-12;

// What differs between kernels whose warps load and multiply by turns and those where a warp of its
// own keeps the copy engine busy.
struct Style {
  double tensor_share;
  double l2_bytes_per_clock;
  double step_clocks;
  // Sharpness of the maximum below among the units of an SM: the norm of 2^n. A copy engine that
  // works ahead keeps them from waiting for each other, not from waiting for memory.
  int among_units;
};

// The sharpness of the maximum of an SM's units and the latency of loads, of DRAM and the ways from
// there to the SMs, and of all that.
constexpr int kWithLatency = 2;
constexpr int kBeyondSms = 4;
constexpr int kWithDram = 1;

Style style_of(const Work& work, const ModelCoefficients& model) {
  if (work.asynchronous) {
    return {model.ahead_tensor_share, model.ahead_l2_bytes_per_clock, model.ahead_step_clocks, 4};
  }
  return {model.turns_tensor_share, model.turns_l2_bytes_per_clock, model.turns_step_clocks, 2};
}

// A maximum with a rounded corner: units that are nearly as busy as the busiest get in its way.
double busiest(int doublings, std::initializer_list<double> units) {
  const double most = std::max(units);
  if (most <= 0) return 0;
  double sum = 0;
  for (const double unit : units) {
    double share = unit / most;
    for (int i = 0; i < doublings; ++i) share *= share;
    sum += share;
  }
  for (int i = 0; i < doublings; ++i) sum = std::sqrt(sum);
  return most * sum;
}

double busiest(int doublings, double a, double b) {
  const double most = std::max(a, b);
  if (most <= 0) return 0;
  double share = std::min(a, b) / most;
  for (int i = 0; i < doublings; ++i) share *= share;
  double sum = 1 + share;
  for (int i = 0; i < doublings; ++i) sum = std::sqrt(sum);
  return most * sum;
}

double peak_tflops(const DeviceSpec& device, DType dtype, const Work& work, const Style& style) {
  if (work.unit == Work::Unit::ffma) {
    return device.fp32_tflops * work.unit_rate * device.model.ffma_share;
  }
  const bool half = dtype != DType::tf32;  // fp32 is multiplied in parts of bf16
  const double peak = (half ? device.f16_bf16_tflops : device.tf32_tflops) * work.unit_rate;
  // Power, not the instruction, may be the ceiling; it is known where somebody measured it.
  const bool capped = half && device.measured_f16_bf16_tflops > 0;
  return style.tensor_share * (capped ? std::min(peak, device.measured_f16_bf16_tflops) : peak);
}

Machine machine_of(const DeviceSpec& device, DType dtype, const Work& work, const Style& style,
                   int cluster, int max_sms) {
  const double all_sms = std::max(1, device.sm_count);
  const double clocks_per_us = device.boost_mhz > 0 ? device.boost_mhz : 1000;
  const double tflops = peak_tflops(device, dtype, work, style);
  const double gb_per_s = device.dram_gb_per_s > 0 ? device.dram_gb_per_s : 100;
  return {std::max<double>(1, presumed_sms(device, cluster, max_sms)), clocks_per_us,
          (tflops > 0 ? tflops : kUnknownTflops) * 1e6 / all_sms / clocks_per_us,
          gb_per_s * 1e3 * device.model.dram_share / clocks_per_us};
}

Waves waves_of(const Work& work, const Resources& resources, const DeviceSpec& device,
               const Machine& machine) {
  const int fit =
      blocks_per_sm(device.limits, resources.threads, resources.registers, resources.smem_bytes,
                    resources.static_smem_bytes, resources.barriers);
  const double split = static_cast<double>(std::max<std::int64_t>(1, work.split_k));
  const double blocks =
      static_cast<double>(work.tiles_m) * static_cast<double>(work.tiles_n) * split;
  Waves waves{};
  // A grid smaller than the tiles loops over them.
  const double launched = std::ceil(static_cast<double>(resources.grid) / machine.sms);
  waves.resident = std::max(1.0, std::min<double>(fit, launched));
  waves.full = std::floor(blocks / (waves.resident * machine.sms));
  waves.tail = std::ceil((blocks - waves.full * waves.resident * machine.sms) / machine.sms);
  waves.k_steps = std::ceil(static_cast<double>(work.k_tiles) / split);
  return waves;
}

Step step_of(const Work& work, const Resources& resources, const Machine& machine,
             const ModelCoefficients& model, const Style& style) {
  // What does not fit in registers is stored and read once per k tile, and products wait for it.
  const int registers =
      resources.role_registers > 0 ? resources.role_registers : resources.registers;
  const double spilled = std::max(0, resources.register_demand - registers);
  const double spill_bytes = spilled * 2 * 4 * resources.threads;
  const double smem_bytes = work.smem_bytes_per_k_tile + spill_bytes;
  const double copies = work.load_instructions_per_k_tile * work.warps;
  double multiply =
      work.flops_per_k_tile / machine.flops_per_clock + spill_bytes / model.smem_bytes_per_clock;
  // FFMA at full rate takes every issue slot, so each other instruction delays it.
  if (work.unit == Work::Unit::ffma) {
    multiply += (smem_bytes / kSmemBytesPerInstruction + copies) / kIssuesPerClock;
  }
  return {multiply,
          smem_bytes / model.smem_bytes_per_clock,
          work.load_bytes_per_k_tile / style.l2_bytes_per_clock,
          copies * model.clocks_per_copy,
          work.load_instructions_per_k_tile * model.warp_clocks_per_copy,
          static_cast<double>(std::max(1, work.stages - 1))};
}

Residents residents_of(double blocks, const Step& step, const Work& work, const Style& style,
                       int sub_partitions) {
  const auto units = [&](double resident, double issue) {
    // A sub-partition without a warp multiplies nothing.
    const double warps = resident * std::max(1, work.warps);
    const double idle = std::max(1.0, sub_partitions / warps);
    return busiest(style.among_units, {step.multiply * idle, step.smem, step.l2, issue});
  };
  const double alone = units(1, std::max(step.issue, step.warp_issue)) + style.step_clocks;
  const double together = units(blocks, step.issue);
  return {blocks, std::max(blocks * together, alone)};
}

// Clocks that the sum over the parts of k takes `blocks` resident blocks of one SM. In a cluster,
// each gathers a slice of the tile from the others. In the workspace, each leaves its part, and the
// last to come reads all of them, or each a share of all where they wait for each other.
double reduction_clocks(const Work& work, const Problem& problem, const ModelCoefficients& model,
                        const Style& style, bool cooperative, double blocks) {
  if (work.split_k <= 1) return 0;
  const auto parts = static_cast<double>(work.cluster_k);
  const double groups = static_cast<double>(work.split_k) / parts;
  // Sixteen rows at a time, as a warp holds them, and none past the end of C.
  const double rows = static_cast<double>(std::min(work.block_m, (problem.m + 15) / 16 * 16));
  const double slice = rows * static_cast<double>(work.block_n) * 4 / parts;  // bytes of fp32
  double clocks = 0;
  if (parts > 1) {
    clocks +=
        model.cluster_sum_clocks + blocks * slice * (parts - 1) / model.cluster_bytes_per_clock;
  }
  if (groups > 1) {
    const double read = cooperative ? blocks : groups;
    clocks +=
        blocks * model.workspace_sum_clocks + slice * (blocks + read) / style.l2_bytes_per_clock;
  }
  return clocks;
}

}  // namespace

CodeModel::CodeModel(const Work& work, const Problem& problem, const DeviceSpec& device,
                     const Resources& resources, int max_sms)
    : machine_(machine_of(device, problem.dtype, work, style_of(work, device.model),
                          resources.cluster, max_sms)),
      waves_(waves_of(work, resources, device, machine_)),
      memory_(work, device, resources, machine_.sms, waves_.resident, problem.mode) {
  const ModelCoefficients& model = device.model;
  const Style style = style_of(work, model);
  sides_bytes_per_clock_ = model.sides_bytes_per_clock;
  step_ = step_of(work, resources, machine_, model, style);
  const int parts = device.limits.sub_partitions;
  full_ = residents_of(waves_.resident, step_, work, style, parts);
  const bool alike = waves_.tail == waves_.resident || waves_.tail == 0;
  tail_ = alike ? full_ : residents_of(waves_.tail, step_, work, style, parts);
  loads_ = static_cast<double>(work.tiles_m) * static_cast<double>(work.tiles_n) *
           static_cast<double>(work.k_tiles) * work.load_bytes_per_k_tile;
  // What is under way at once is asked for in the fill; each k tile behind that waits again.
  const double later = std::max(0.0, waves_.k_steps - step_.in_flight) / waves_.k_steps;
  l2_latency_ = (later + work.waits_per_k_tile) * model.l2_latency_clocks;
  dram_latency_ = later * model.dram_latency_clocks;

  // The first wave starts and ends with idle units; in later ones resident blocks fill the gaps.
  const double per_us = machine_.clocks_per_us;
  const double exposed = 1 + (waves_.count() - 1) / waves_.resident;
  const double first_load = model.l2_latency_clocks + model.dram_latency_clocks;
  double fill = model.prologue_clocks + first_load + step_.issue * (work.stages - 1);
  // Blocks that share loads start and end together; those that split k meet in the reduction only.
  if (resources.cluster > work.cluster_k) fill += model.cluster_clocks;
  const double together = waves_.full > 0 ? waves_.resident : waves_.tail;
  // Who adds up stores: each of a cluster's parts, or of those that wait for each other, a share.
  const std::int64_t sharers = resources.cooperative ? work.split_k : work.cluster_k;
  const double stored = together * work.store_bytes_per_tile / static_cast<double>(sharers);
  const double store = model.epilogue_clocks + stored / model.store_bytes_per_clock;
  // Where blocks loop over tiles, the warps that store get the next one's products going again.
  const bool loops =
      resources.grid < static_cast<double>(work.tiles_m) * work.tiles_n * work.split_k;
  const double restart =
      work.asynchronous && loops ? stored / model.between_tiles_bytes_per_clock : 0;
  const double uncovered = work.epilogue_overlaps ? 0 : (exposed - 1) * (store + restart);

  // Operands that are copied first come from DRAM, stay in the L2, and all blocks meet behind that.
  if (work.packed_bytes > 0) {
    const double stores = machine_.sms * model.store_bytes_per_clock;
    pack_us_ = (first_load + model.workspace_sum_clocks +
                work.packed_bytes * (1 / machine_.dram_bytes_per_clock + 1 / stores)) /
               per_us;
  }
  launch_us_ = device.launch_us > 0 ? device.launch_us : model.launch_us;
  const bool filled_ahead = work.asynchronous && !work.stores_then_loads;
  fill_us_ = (filled_ahead ? 1 : exposed) * fill / per_us;
  epilogue_us_ = (store + uncovered) / per_us;
  // Each wave's blocks add up their own.
  const auto sums = [&](double blocks) {
    return reduction_clocks(work, problem, model, style, resources.cooperative, blocks);
  };
  reduction_us_ =
      (waves_.full * sums(waves_.resident) + (waves_.tail > 0 ? sums(waves_.tail) : 0)) / per_us;
}

double CodeModel::clocks_between_loads(double blocks, double dram) const {
  const double from_dram = std::min(1.0, dram / std::max(1.0, loads_));
  const double latency = l2_latency_ + from_dram * dram_latency_;
  return (latency + blocks * step_.l2) / step_.in_flight;
}

double CodeModel::main_loop_us(const Shared& shared) const {
  const double dram = shared.dram;
  // Clocks that an SM takes for one k tile of each of its blocks.
  const auto step_clocks = [&](const Residents& residents, double pair) {
    return busiest(kWithLatency, {residents.busy, clocks_between_loads(residents.blocks, dram),
                                  residents.blocks * pair});
  };
  // Blocks of the first wave begin together, and what a pair asks for is no limit then.
  double sm_clocks = step_clocks(waves_.full > 0 ? full_ : tail_, 0);
  if (waves_.full > 0) {
    const bool alike = waves_.tail > 0 && tail_.blocks == full_.blocks;
    const double more = waves_.full - 1 + (alike ? 1 : 0);
    if (more > 0) sm_clocks += more * step_clocks(full_, shared.pair);
    if (waves_.tail > 0 && !alike) sm_clocks += step_clocks(tail_, shared.pair);
  }
  sm_clocks *= waves_.k_steps;
  return busiest(kWithDram, sm_clocks, clocks_beyond_sms(shared)) / machine_.clocks_per_us;
}

double CodeModel::clocks_beyond_sms(const Shared& shared) const {
  const double blocks = waves_.full * waves_.resident + waves_.tail;  // of the fullest SM
  return busiest(kBeyondSms,
                 {shared.dram / machine_.dram_bytes_per_clock,
                  shared.sides / sides_bytes_per_clock_, shared.gpc * blocks * waves_.k_steps});
}

double CodeModel::total_us(const Shared& shared) const {
  return launch_us_ + pack_us_ + fill_us_ + main_loop_us(shared) + epilogue_us_ + reduction_us_;
}

double CodeModel::us(TileOrder order) {
  const Shared shared = memory_.in_order(order);
  if (shared != last_) {  // else the order changes nothing, which is common
    last_ = shared;
    us_ = total_us(shared);
  }
  return us_;
}

double CodeModel::least_us() const { return total_us(memory_.least()) * kRounding; }

std::vector<TimeTerm> CodeModel::terms(TileOrder order) const {
  const Shared shared = memory_.in_order(order);
  const double dram = shared.dram;
  const double per_us = machine_.clocks_per_us;
  const double together = waves_.full > 0 ? waves_.resident : waves_.tail;
  const double block_steps =
      (waves_.full * waves_.resident + waves_.tail) * waves_.k_steps / per_us;  // of the fullest SM
  const double later_steps =
      block_steps - together * waves_.k_steps / per_us;  // but the first wave
  const double waits = clocks_between_loads(together, dram) * waves_.count() * waves_.k_steps;
  return {{"launch", launch_us_},
          {"packing", pack_us_},
          {"pipeline fill", fill_us_},
          {"main loop", main_loop_us(shared)},
          {"epilogue", epilogue_us_},
          {"split-k reduction", reduction_us_},
          {"total", total_us(shared)},
          {"alone: multiply", step_.multiply * block_steps},
          {"alone: shared memory", step_.smem * block_steps},
          {"alone: L2", step_.l2 * block_steps},
          {"alone: a GPC's way to L2", shared.gpc * block_steps},
          {"alone: a pair's way to L2", shared.pair * later_steps},
          {"alone: copy instructions", step_.issue * block_steps},
          {"alone: a warp's copies", step_.warp_issue * waves_.count() * waves_.k_steps / per_us},
          {"alone: latency", waits / per_us},
          {"alone: between the L2's sides", shared.sides / sides_bytes_per_clock_ / per_us},
          {"alone: DRAM", dram / machine_.dram_bytes_per_clock / per_us}};
}

double predict_us(const Config& config, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms) {
  return predict_us(config.kernel->work(config, problem, device), problem, device, resources,
                    max_sms);
}

double predict_us(const Work& work, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms) {
  return CodeModel(work, problem, device, resources, max_sms).us(work.order);
}

std::vector<TimeTerm> predict_terms(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Resources& resources,
                                    int max_sms) {
  const Work work = config.kernel->work(config, problem, device);
  return CodeModel(work, problem, device, resources, max_sms).terms(work.order);
}

}  // namespace autotune::search

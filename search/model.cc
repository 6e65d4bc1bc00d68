// The whole cost model. A k tile costs what the busiest unit of the SM needs for it; blocks on one
// SM share its units and hide each other's waits; waves of blocks follow each other; the whole
// cannot be faster than DRAM delivers. Inside, time is in SM clocks.
#include "search/model.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "search/occupancy.h"

namespace autotune::search {
namespace {

constexpr double kSmemBytesPerInstruction = 512;  // 16 bytes per lane
constexpr double kIssuesPerClock = 4;             // one per sub-partition
constexpr double kUnknownTflops = 1;              // where a device file knows no rate at all

// What differs between kernels whose warps load and multiply by turns and those where a warp of its
// own keeps the copy engine busy.
struct Style {
  double tensor_share;
  double l2_bytes_per_clock;
  double step_clocks;
  // Sharpness of the maximum below: the norm of 2^n, among the units of an SM, between those and
  // the latency of loads, and between all that and DRAM. A copy engine that works ahead keeps the
  // units from waiting for each other, not from waiting for memory (wide data of an H200).
  int among_units;
  int with_latency;
  int with_dram;
};

Style style_of(const Work& work, const ModelCoefficients& model) {
  if (work.asynchronous) {
    return {model.ahead_tensor_share, model.ahead_l2_bytes_per_clock, 0, 4, 2, 1};
  }
  return {
      model.turns_tensor_share, model.turns_l2_bytes_per_clock, model.turns_step_clocks, 2, 2, 2};
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

struct Machine {
  double sms;
  double clocks_per_us;
  double flops_per_clock;       // of one SM
  double dram_bytes_per_clock;  // of the whole device
};

Machine machine_of(const DeviceSpec& device, DType dtype, const Work& work, const Style& style,
                   int max_sms) {
  const double all_sms = std::max(1, device.sm_count);
  const double clocks_per_us = device.boost_mhz > 0 ? device.boost_mhz : 1000;
  const double tflops = peak_tflops(device, dtype, work, style);
  const double gb_per_s = device.dram_gb_per_s > 0 ? device.dram_gb_per_s : 100;
  return {max_sms > 0 ? std::min<double>(max_sms, all_sms) : all_sms, clocks_per_us,
          (tflops > 0 ? tflops : kUnknownTflops) * 1e6 / all_sms / clocks_per_us,
          gb_per_s * 1e3 * device.model.dram_share / clocks_per_us};
}

// How the blocks of the launch spread over the SMs.
struct Waves {
  double resident;  // blocks on one SM at once
  double full;      // waves that fill every SM
  double tail;      // blocks on the fullest SM of the last wave, 0 where there is none
  double k_steps;   // k tiles of one block
  double count() const { return full + (tail > 0 ? 1 : 0); }
};

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

// Bytes that cross DRAM. Tiles that run at the same time share rows of A and columns of B, so the
// order of the tiles decides how often an operand that does not stay in L2 is read again.
double dram_bytes(const Work& work, const DeviceSpec& device, const Machine& machine,
                  const Waves& waves, TimingMode mode) {
  const double operands = work.a_bytes + work.b_bytes;
  const double cache = device.model.l2_share * static_cast<double>(device.l2_bytes);
  const bool stays = mode == TimingMode::hot && operands + work.c_bytes <= cache;
  if (stays) return 0;

  const auto tiles_m = static_cast<double>(std::max<std::int64_t>(1, work.tiles_m));
  const auto tiles_n = static_cast<double>(std::max<std::int64_t>(1, work.tiles_n));
  const double tiles = tiles_m * tiles_n;
  const double split = static_cast<double>(std::max<std::int64_t>(1, work.split_k));
  const double at_once = std::clamp(waves.resident * machine.sms / split, 1.0, tiles);
  const double along = work.raster_along_n ? tiles_n : tiles_m;
  const double across = work.raster_along_n ? tiles_m : tiles_n;
  const double width = std::clamp<double>(work.swizzle, 1, across);
  const double length = std::min(along, std::ceil(at_once / width));
  const double walked = std::min(across, width * std::ceil(at_once / (width * along)));
  const double in_m = work.raster_along_n ? walked : length;
  const double in_n = work.raster_along_n ? length : walked;

  const double rounds = tiles / at_once;
  const double without_cache =
      rounds * (work.a_bytes * in_m / tiles_m + work.b_bytes * in_n / tiles_n);
  const double kept = std::min(1.0, cache / std::max(1.0, operands));
  return operands + std::max(0.0, without_cache - operands) * (1 - kept) + work.c_bytes;
}

// Clocks that one k tile of one block keeps each unit of its SM busy.
struct Step {
  double multiply;
  double smem;
  double l2;
  double issue;
  double latency;    // of its loads, before the first byte arrives
  double in_flight;  // k tiles whose loads are under way at once
};

// `from_dram`: the share of its loads that miss L2.
Step step_of(const Work& work, const Resources& resources, const Machine& machine,
             const ModelCoefficients& model, const Style& style, double from_dram) {
  // What does not fit in registers is stored and read once per k tile.
  const int registers =
      resources.role_registers > 0 ? resources.role_registers : resources.registers;
  const double spilled = std::max(0, resources.register_demand - registers);
  const double spill_bytes = spilled * 2 * 4 * resources.threads;
  const double smem_bytes = work.smem_bytes_per_k_tile + spill_bytes;
  const double copies = work.load_instructions_per_k_tile * work.warps;
  double multiply = work.flops_per_k_tile / machine.flops_per_clock;
  // FFMA at full rate takes every issue slot, so each other instruction delays it.
  if (work.unit == Work::Unit::ffma) {
    multiply += (smem_bytes / kSmemBytesPerInstruction + copies) / kIssuesPerClock;
  }
  return {multiply,
          smem_bytes / model.smem_bytes_per_clock,
          work.load_bytes_per_k_tile / style.l2_bytes_per_clock,
          copies * model.clocks_per_copy,
          model.l2_latency_clocks + from_dram * model.dram_latency_clocks,
          static_cast<double>(std::max(1, work.stages - 1))};
}

double clocks_between_loads(const Step& step, double blocks) {
  return (step.latency + blocks * step.l2) / step.in_flight;
}

// Clocks that an SM with `blocks` resident blocks takes for one k tile of each.
double clocks_of_step(const Step& step, const Work& work, const Style& style, int sub_partitions,
                      double blocks) {
  const auto units = [&](double resident) {
    // A sub-partition without a warp multiplies nothing.
    const double idle = std::max(1.0, sub_partitions / (resident * std::max(1, work.warps)));
    return busiest(style.among_units, {step.multiply * idle, step.smem, step.l2, step.issue});
  };
  const double alone = units(1) + style.step_clocks;
  return busiest(style.with_latency,
                 {std::max(blocks * units(blocks), alone), clocks_between_loads(step, blocks)});
}

// Clocks that the sum over the parts of k takes `blocks` resident blocks of one SM: each gathers a
// slice of the tile from its cluster, leaves that in the workspace, and the last one of each slice
// reads what the others left.
double reduction_clocks(const Work& work, const Problem& problem, const ModelCoefficients& model,
                        const Style& style, double blocks) {
  if (work.split_k <= 1) return 0;
  const auto parts = static_cast<double>(work.cluster_k);
  const double groups = static_cast<double>(work.split_k) / parts;
  // Sixteen rows at a time, as a warp holds them, and none past the end of C.
  const double rows = static_cast<double>(std::min(work.block_m, (problem.m + 15) / 16 * 16));
  const double slice = rows * static_cast<double>(work.block_n) * 4 / parts;  // bytes of fp32
  double clocks = 0;
  if (parts > 1) {
    clocks += 2 * model.l2_latency_clocks +  // to meet, and to read
              blocks * slice * (parts - 1) / model.cluster_bytes_per_clock;
  }
  if (groups > 1) {
    clocks += 4 * model.l2_latency_clocks +  // store, count, learn the count, read
              slice * (blocks + groups) / style.l2_bytes_per_clock;
  }
  return clocks;
}

struct Prediction {
  double launch, fill, main_loop, epilogue, reduction;  // add up
  double multiply, smem, l2, copies, latency, dram;     // main loop, bound by one alone
  double total() const { return launch + fill + main_loop + epilogue + reduction; }
};

// All in microseconds.
Prediction predict(const Work& work, const Problem& problem, const DeviceSpec& device,
                   const Resources& resources, int max_sms) {
  const ModelCoefficients& model = device.model;
  const Style style = style_of(work, model);
  const Machine machine = machine_of(device, problem.dtype, work, style, max_sms);
  const Waves waves = waves_of(work, resources, device, machine);
  const double per_us = machine.clocks_per_us;

  const double dram = dram_bytes(work, device, machine, waves, problem.mode);
  const double loads = static_cast<double>(work.tiles_m) * static_cast<double>(work.tiles_n) *
                       static_cast<double>(work.k_tiles) * work.load_bytes_per_k_tile;
  const Step step =
      step_of(work, resources, machine, model, style, std::min(1.0, dram / std::max(1.0, loads)));

  const int parts = device.limits.sub_partitions;
  double sm_clocks = waves.full * clocks_of_step(step, work, style, parts, waves.resident);
  if (waves.tail > 0) sm_clocks += clocks_of_step(step, work, style, parts, waves.tail);
  sm_clocks *= waves.k_steps;
  const double dram_clocks = dram / machine.dram_bytes_per_clock;

  // The first wave starts and ends with idle units; in later ones resident blocks fill the gaps.
  const double exposed = 1 + (waves.count() - 1) / waves.resident;
  const double first_load = model.l2_latency_clocks + model.dram_latency_clocks;
  double fill = model.prologue_clocks + first_load + step.issue * (work.stages - 1);
  // Blocks that share loads start and end together; those that split k meet in the reduction only.
  if (resources.cluster > work.cluster_k) fill += model.cluster_clocks;
  const double together = waves.full > 0 ? waves.resident : waves.tail;
  const double store = together * work.store_bytes_per_tile / static_cast<double>(work.cluster_k) /
                       model.store_bytes_per_clock;

  Prediction us{};
  us.launch = device.launch_us > 0 ? device.launch_us : model.launch_us;
  us.fill = (work.asynchronous ? 1 : exposed) * fill / per_us;
  us.main_loop = busiest(style.with_dram, {sm_clocks, dram_clocks}) / per_us;
  us.epilogue = (work.epilogue_overlaps ? 1 : exposed) * (model.epilogue_clocks + store) / per_us;
  us.reduction = reduction_clocks(work, problem, model, style, together) / per_us;
  const double block_steps =
      (waves.full * waves.resident + waves.tail) * waves.k_steps / per_us;  // of the fullest SM
  us.multiply = step.multiply * block_steps;
  us.smem = step.smem * block_steps;
  us.l2 = step.l2 * block_steps;
  us.copies = step.issue * block_steps;
  us.latency = clocks_between_loads(step, together) * waves.count() * waves.k_steps / per_us;
  us.dram = dram_clocks / per_us;
  return us;
}

}  // namespace

double predict_us(const Config& config, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms) {
  return predict_us(config.kernel->work(config, problem, device), problem, device, resources,
                    max_sms);
}

double predict_us(const Work& work, const Problem& problem, const DeviceSpec& device,
                  const Resources& resources, int max_sms) {
  return predict(work, problem, device, resources, max_sms).total();
}

std::vector<TimeTerm> predict_terms(const Config& config, const Problem& problem,
                                    const DeviceSpec& device, const Resources& resources,
                                    int max_sms) {
  const Work work = config.kernel->work(config, problem, device);
  const Prediction us = predict(work, problem, device, resources, max_sms);
  return {{"launch", us.launch},
          {"pipeline fill", us.fill},
          {"main loop", us.main_loop},
          {"epilogue", us.epilogue},
          {"split-k reduction", us.reduction},
          {"total", us.total()},
          {"alone: multiply", us.multiply},
          {"alone: shared memory", us.smem},
          {"alone: L2", us.l2},
          {"alone: copy instructions", us.copies},
          {"alone: latency", us.latency},
          {"alone: DRAM", us.dram}};
}

}  // namespace autotune::search

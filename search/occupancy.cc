#include "search/occupancy.h"

#include <algorithm>
#include <limits>

namespace autotune::search {
namespace {

constexpr int kWarp = 32;
constexpr int kUnlimited = std::numeric_limits<int>::max();
constexpr int kPtxasRegisterStep = 8;  // ptxas caps registers per thread in steps of this many

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit;
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return divide_up(value, unit) * unit;
}

std::int64_t registers_of_warp(const ArchLimits& limits, int registers) {
  return round_up(std::int64_t{registers} * kWarp, limits.register_unit_per_warp);
}

// Named barriers of an SM per block slot. Source: cudaOccMaxBlocksPerSMBlockBarrierLimit in
// cuda_occupancy.h 13.0, which looks at barriers from 9.0 on.
int barriers_per_block_slot(int cc) { return cc < 110 && cc != 101 ? 2 : 1; }

std::int64_t blocks_by_warps(const ArchLimits& limits, int warps) {
  return limits.threads_per_sm / kWarp / warps;
}

std::int64_t blocks_by_registers(const ArchLimits& limits, int threads, int warps, int registers) {
  const std::int64_t per_warp = registers_of_warp(limits, registers);
  if (per_warp == 0) return kUnlimited;
  if (per_warp > registers_of_warp(limits, limits.registers_per_thread)) return 0;
  if (registers_of_block(limits, threads, registers) > limits.registers_per_block) return 0;
  // Each sub-partition has registers of its own, so what is left over in one serves no other.
  const std::int64_t warps_per_part = limits.registers_per_sm / limits.sub_partitions / per_warp;
  return warps_per_part * limits.sub_partitions / warps;
}

std::int64_t blocks_by_smem(const ArchLimits& limits, std::int64_t dynamic_smem,
                            std::int64_t static_smem) {
  const std::int64_t allocated = limits.smem_taken(dynamic_smem + static_smem);
  if (allocated > limits.smem_optin_per_block + limits.smem_reserved_per_block) return 0;
  return allocated == 0 ? kUnlimited : limits.smem_per_sm / allocated;
}

}  // namespace

std::int64_t registers_of_block(const ArchLimits& limits, int threads, int registers) {
  return registers_of_warp(limits, registers) *
         round_up(divide_up(threads, kWarp), limits.sub_partitions);
}

int blocks_per_sm(const ArchLimits& limits, int threads, int registers, std::int64_t dynamic_smem,
                  std::int64_t static_smem, int barriers) {
  if (threads <= 0 || threads > limits.threads_per_block || registers < 0) return 0;
  const int warps = static_cast<int>(divide_up(threads, kWarp));
  std::int64_t blocks = limits.blocks_per_sm;
  blocks = std::min(blocks, blocks_by_warps(limits, warps));
  blocks = std::min(blocks, blocks_by_registers(limits, threads, warps, registers));
  blocks = std::min(blocks, blocks_by_smem(limits, dynamic_smem, static_smem));
  if (barriers > 0 && limits.cc >= 90) {
    const int available = limits.blocks_per_sm * barriers_per_block_slot(limits.cc);
    blocks = std::min<std::int64_t>(blocks, available / barriers);
  }
  return static_cast<int>(blocks);
}

int launch_register_cap(const ArchLimits& limits, int threads, int min_blocks) {
  const std::int64_t warps = std::max<std::int64_t>(1, divide_up(threads, kWarp));
  std::int64_t blocks = std::max(1, min_blocks);
  if (blocks > limits.blocks_per_sm || blocks * warps > limits.warps_per_sm) blocks = 1;
  const std::int64_t warps_per_part = divide_up(blocks * warps, limits.sub_partitions);
  const std::int64_t per_thread =
      limits.registers_per_sm / limits.sub_partitions / warps_per_part / kWarp;
  return static_cast<int>(std::min<std::int64_t>(
      limits.registers_per_thread, per_thread / kPtxasRegisterStep * kPtxasRegisterStep));
}

}  // namespace autotune::search

// What the host twins of the kernels fed by Hopper's copy engine share.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "kernels/gemm/gemm_twin.h"

namespace autotune::gemm {

inline constexpr std::int64_t kSlabBytes = 128;  // a row under the 128-byte swizzle
inline constexpr std::int64_t kMaxBox = 256;     // rows of one copy (CUDA driver API, tensor maps)
inline constexpr std::int64_t kWarpgroup = 128;  // threads

// An operand's tile in shared memory: rows of 128 bytes in slabs that lie beside each other in the
// contiguous direction.
struct SlabTile {
  std::int64_t rows;
  std::int64_t slabs;
  std::int64_t bytes() const { return rows * slabs * kSlabBytes; }
};

// `extent`: the block's size along m or n. `element`: bytes.
inline SlabTile slab_tile(bool k_major, std::int64_t extent, std::int64_t block_k,
                          std::int64_t element) {
  const std::int64_t width = k_major ? block_k : extent;
  return {k_major ? extent : block_k, ceil_div(width, kSlabBytes / element)};
}

// The map by which copies of `box_rows` rows of a slab reach an operand of `extent` x k.
inline TensorMap operand_map(std::size_t offset, DType dtype, const void* address, bool k_major,
                             std::int64_t extent, std::int64_t k, std::int64_t leading,
                             std::int64_t box_rows) {
  const std::int64_t element = storage_bytes(dtype);
  TensorMap map;
  map.offset = offset;
  map.element = dtype;
  map.address = reinterpret_cast<std::uint64_t>(address);
  map.inner = k_major ? k : extent;
  map.outer = k_major ? extent : k;
  map.pitch_bytes = leading * element;
  map.box_inner = static_cast<std::uint32_t>(kSlabBytes / element);
  map.box_outer = static_cast<std::uint32_t>(box_rows);
  map.swizzle_bytes = kSlabBytes;
  return map;
}

inline constexpr Constraint kWholeSlabs{
    "whole_slabs",
    "gated, with B contiguous along n, block_n must be a multiple of 128 bytes: a slab of the "
    "tile is of one matrix",
    [](const ParameterValuesArray& values, const KernelTraits& t) {
      return !t.gated || b_is_k_major(t.layout) ||
             values[1] * storage_bytes(t.dtype) % kSlabBytes == 0;
    },
    reads_of({1})};  // block_n

// Puts a kernel's argument into the plan, and the maps of the operands: copies move `rows_a` rows
// of a slab of A and `rows_b` of a matrix of weights. `Gated` is `Args` with map_up behind it.
template <typename Gated, typename Args>
void put_argument(const Args& whole, const Problem& problem, std::int64_t rows_a,
                  std::int64_t rows_b, LaunchPlan& plan) {
  constexpr std::size_t kMapUp = sizeof(Args);
  static_assert(kMapUp + sizeof(whole.map_b) <= sizeof(Gated));
  static_assert(sizeof(Gated) <= sizeof(plan.params));
  std::memcpy(plan.params.data(), &whole, sizeof(whole));
  plan.params_size = is_gated(problem) ? sizeof(Gated) : sizeof(whole);

  const auto operand = [&](std::size_t offset, const void* address, bool k_major,
                           std::int64_t extent, std::int64_t leading, std::int64_t rows) {
    plan.maps[plan.map_count++] =
        operand_map(offset, problem.dtype, address, k_major, extent, problem.k, leading, rows);
  };
  const bool b_k_major = b_is_k_major(problem.layout);
  operand(offsetof(Args, map_a), whole.gemm.a, a_is_k_major(problem.layout), problem.m, problem.lda,
          rows_a);
  operand(offsetof(Args, map_b), whole.gemm.b, b_k_major, problem.n, problem.ldb, rows_b);
  if (is_gated(problem)) {
    operand(kMapUp, whole.gemm.up, b_k_major, problem.n, problem.ldb, rows_b);
  }
}

// Why the device has no way to run such a kernel; empty where it has.
inline std::string no_wgmma(const DeviceSpec& device) {
  if (device.limits.has(Feature::wgmma)) return {};
  return fmt::format("{} has no warpgroup matrix instruction", device.limits.arch);
}
// Why the copy engine cannot load these operands; empty where it can.
inline std::string not_loadable(const KernelTraits& traits) {
  if (has_aligned_rows(traits)) return {};
  return "the tensor copy engine needs rows of A and B that start on 16 bytes";
}

}  // namespace autotune::gemm

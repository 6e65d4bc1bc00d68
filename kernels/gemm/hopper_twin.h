// What the host twins of the kernels fed by Hopper's copy engine share.
#pragma once

#include <fmt/format.h>

#include <cstdint>
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

// Why the device has no way to run such a kernel; empty where it has.
inline std::string no_wgmma(const DeviceSpec& device) {
  if (device.limits.has(Feature::wgmma)) return {};
  return fmt::format("{} has no warpgroup matrix instruction", device.limits.arch);
}
// Why the copy engine cannot load these operands; empty where it can.
inline std::string not_loadable(const KernelTraits& traits) {
  if (traits.align_a == 16 && traits.align_b == 16) return {};
  return "the tensor copy engine needs rows of A and B that start on 16 bytes";
}

}  // namespace autotune::gemm

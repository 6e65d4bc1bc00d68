// What a config of wgmma comes to in threads, rows, columns and bytes: how wgmma_tile.cuh lays out
// a block's shared memory and who works on what.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/gemm/hopper_twin.h"

namespace autotune::gemm::wgmma {

// Where a config holds the value of each parameter.
enum Index {
  kBlockM,
  kBlockN,
  kBlockK,
  kStages,
  kConsumers,
  kPingpong,
  kClusterM,
  kClusterN,
  kSplitK,
  kStagger
};

using Values = ParameterValuesArray;

inline constexpr std::int64_t kInstructionM = 64;  // rows of a warpgroup's instruction
inline constexpr std::int64_t kWarpRows = 16;      // and of them each warp's

inline std::int64_t element(const KernelTraits& t) { return storage_bytes(t.dtype); }
inline std::int64_t step_k(const KernelTraits& t) { return 32 / element(t); }
inline std::int64_t slab_elements(const KernelTraits& t) { return kSlabBytes / element(t); }

inline std::int64_t consumer_rows(const Values& v) {
  return v[kPingpong] != 0 ? v[kBlockM] : v[kBlockM] / v[kConsumers];
}
inline std::int32_t threads_of(const Values& v) {
  return static_cast<std::int32_t>(kWarpgroup * (1 + v[kConsumers]));
}
// Columns of an instruction: block_n of each matrix of weights.
inline std::int32_t columns(const Values& v, const KernelTraits& t) {
  return v[kBlockN] * weights(t);
}
inline std::int64_t accumulators(const Values& v, const KernelTraits& t) {
  return consumer_rows(v) * columns(v, t) / kWarpgroup;
}

// Blocks of a cluster that share a tile's k. More than 8, or those that share loads with other
// tiles' in their clusters, meet in a workspace.
inline constexpr std::int32_t kMostParts = 8;  // portable cluster size
inline std::int32_t parts_of(const Values& v) {
  return v[kSplitK] <= kMostParts && v[kClusterM] * v[kClusterN] == 1 ? v[kSplitK] : 1;
}
// Columns of C that one of them stores.
inline std::int64_t slice_columns(const Values& v) { return v[kBlockN] / parts_of(v); }
// What the other blocks of a cluster have of this one's slice.
inline std::int64_t given_bytes(const Values& v) {
  return (parts_of(v) - 1) * v[kBlockM] * slice_columns(v) * 4;
}

inline SlabTile tile_of(bool k_major, std::int64_t extent, const Values& v, const KernelTraits& t) {
  return slab_tile(k_major, extent, v[kBlockK], element(t));
}
inline SlabTile tile_a(const Values& v, const KernelTraits& t) {
  return tile_of(a_is_k_major(t.layout), v[kBlockM], v, t);
}
inline SlabTile tile_b(const Values& v, const KernelTraits& t) {
  return tile_of(b_is_k_major(t.layout), columns(v, t), v, t);
}
// The part of B's tile that one matrix of weights fills.
inline SlabTile tile_weights(const Values& v, const KernelTraits& t) {
  return tile_of(b_is_k_major(t.layout), v[kBlockN], v, t);
}

// Columns of C in a row of 128 bytes, the widest that a store moves.
inline std::int64_t row_columns(const KernelTraits& t) {
  return kSlabBytes / storage_bytes(t.out_dtype);
}

// Shared memory of a block wherever there are warpgroup instructions: 227 KB (CUDA programming
// guide, technical specifications of compute capability 9.0).
inline constexpr std::int64_t kMostShared = 232448;

// Shared memory: the ring of stages, each A then B; two buffers of 16 rows per consumer warp for
// the stores (of wgmma_swap a consumer's warps share two of 64), unless these go through a stage;
// where a cluster's blocks share k, what the others give; barriers: two per stage, two for
// pingpong's turns, two per consumer warp for what is given.
struct SmemLayout {
  std::int64_t a_bytes;
  std::int64_t b_bytes;
  std::int64_t ring_bytes;
  std::int64_t given_bytes;
  std::int64_t chunk;        // columns of the product that one store moves
  std::int64_t rest;         // and the last one of a row
  std::int64_t store_bytes;  // of a warp's rows of one buffer
  std::int64_t stores_bytes;
  bool stores_in_ring;  // C leaves through a stage that has been read
  std::int64_t barriers;
  std::int64_t total() const {
    return ring_bytes + (stores_in_ring ? 0 : stores_bytes) + given_bytes + 8 * barriers;
  }
};

inline std::int64_t ring_bytes(const Values& v, const KernelTraits& t) {
  return v[kStages] * (tile_a(v, t).bytes() + tile_b(v, t).bytes());
}

inline SmemLayout layout_of(const Values& v, const KernelTraits& t) {
  SmemLayout l{};
  l.a_bytes = tile_a(v, t).bytes();
  l.b_bytes = tile_b(v, t).bytes();
  l.ring_bytes = ring_bytes(v, t);
  l.given_bytes = given_bytes(v);
  l.barriers = 2 * v[kStages] + 2 + (parts_of(v) > 1 ? 2 * 4 * v[kConsumers] : 0);
  const std::int64_t columns = slice_columns(v);
  const auto store_by = [&](std::int64_t most) {
    l.chunk = std::min(columns, most);
    l.rest = columns > 0 ? (columns - 1) % l.chunk + 1 : 0;
    l.store_bytes = kWarpRows * l.chunk * storage_bytes(t.out_dtype);
    l.stores_bytes = v[kConsumers] * std::int64_t{4 * 2} * l.store_bytes;
    return l.total() <= kMostShared;
  };
  // By half rows where buffers of whole ones leave no room for the last stage.
  const std::int64_t row = row_columns(t);
  if (store_by(row) || store_by(row / 2)) return l;
  // Through a stage, by whole rows, where these leave none either. A block with several tiles then
  // loads less of the next one while it stores. A warp that has but one store needs one buffer.
  store_by(row);
  const bool one = consumer_rows(v) == kInstructionM && columns <= l.chunk;
  l.stores_in_ring = v[kPingpong] == 0 && l.stores_bytes / (one ? 2 : 1) <= l.a_bytes + l.b_bytes;
  return l;
}

// Registers per thread after setmaxnreg, out of what the launch gives to all warpgroups together
// (launch cap x warpgroups: 3 x 168, 4 x 128). A producer that multicasts spills at 24.
struct Roles {
  std::int32_t producer;
  std::int32_t consumer;
};
inline Roles roles_of(const Values& v) {
  switch (v[kConsumers]) {
    case 1:
      return {0, 0};  // two warpgroups: everyone has 255 from the start
    case 2:
      return {40, 232};
    default:
      return {32, 160};
  }
}

}  // namespace autotune::gemm::wgmma

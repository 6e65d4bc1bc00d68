// Split k: the sum of all parts of a tile of C, always in the same order. The blocks of a cluster
// read each other's accumulators and add up a slice of columns each; where several clusters share
// the tile, the last one to come adds up what all of them left in the workspace (split.cuh).
//
// In both places a thread's accumulators lie in pieces of four, beside those of its neighbours, so
// that it finds its own places of C in what the others left.

constexpr int kPieces = BLOCK_N / 8;  // of a thread, per instruction along m
constexpr int kSlicePieces = kSliceN / 8;
constexpr u32 kPieceStride = CONSUMERS * 128 * 16;  // bytes from one of its pieces to the next
static_assert(kSlicePieces * kParts == kPieces, "slices are whole pieces");
static_assert(kSumBytes == 0 || kSumBytes == kTilesM * kPieces * kPieceStride, "sums");

// Rows past the end of C are neither exchanged nor stored: often most of a tile. One warp's rows
// of an instruction are 16 from `row` on.
__device__ __forceinline__ bool has_rows(const WgmmaArgs& args, int row, int t) {
  return exists(row + t * 64, args.gemm.m);
}

// Adds this block's slice over the cluster. Each begins with its own part and goes round from
// there, so that no block is read by all at once. The cluster must meet once more before shared
// memory serves anything else: the caller waits for that.
__device__ __forceinline__ void add_cluster(float (&slice)[kTilesM][kSliceAccumulators],
                                            const float (&acc)[kTilesM][kAccumulators],
                                            const WgmmaArgs& args, SharedMemory& shared, int row) {
  const u32 mine = shared_address(&shared.sums) + (threadIdx.x - 128) * 16;
  block_wait<CONSUMERS * 128>();  // no consumer reads the ring any more
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    if (!has_rows(args, row, t)) continue;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const float* piece = &acc[t][p * 4];
      store_shared_floats(mine + (t * kPieces + p) * kPieceStride,
                          float4{piece[0], piece[1], piece[2], piece[3]});
    }
  }
  cluster_arrive();
  cluster_wait();
  const u32 rank = cluster_rank();
  clear(slice);
  u32 theirs[kParts];
#pragma unroll
  for (int i = 0; i < kParts; ++i) {
    const u32 part = rank + i < kParts ? rank + i : rank + i - kParts;
    theirs[i] = cluster_address(mine, part) + rank * kSlicePieces * kPieceStride;
  }
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    if (!has_rows(args, row, t)) continue;
#pragma unroll
    for (int p = 0; p < kSlicePieces; ++p) {
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        add_piece(&slice[t][p * 4],
                  load_cluster_floats(theirs[i] + (t * kPieces + p) * kPieceStride));
      }
    }
  }
  fence_async_proxy_cluster();  // the copy engine may be the next to write there
  cluster_arrive();
}

// Adds a slice over the clusters that share its tile. True for the last of them to come: it has the
// sum.
__device__ __forceinline__ bool add_groups(float (&slice)[kTilesM][kSliceAccumulators],
                                           const WgmmaArgs& args, const Unit& unit, u32 rank,
                                           int row) {
  const u32 groups = args.split.groups;
  if (groups == 1) return true;  // k is too short for more: there is no workspace
  constexpr u32 kSliceBytes = kTilesM * kSlicePieces * kPieceStride;
  const u32 at = unit.id * kParts + rank;
  u8* workspace = static_cast<u8*>(args.split.workspace);
  u32* mark = reinterpret_cast<u32*>(workspace) + at;
  u8* sums = workspace + MARK_BYTES + u64(at) * groups * kSliceBytes + (threadIdx.x - 128) * 16;
  float4* mine = reinterpret_cast<float4*>(sums + u64(unit.group) * kSliceBytes);
  constexpr int kStride = kPieceStride / sizeof(float4);
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    if (!has_rows(args, row, t)) continue;
#pragma unroll
    for (int p = 0; p < kSlicePieces; ++p) {
      const float* piece = &slice[t][p * 4];
      mine[(t * kSlicePieces + p) * kStride] = float4{piece[0], piece[1], piece[2], piece[3]};
    }
  }
  block_wait<CONSUMERS * 128>();
  bool last = false;
  if (threadIdx.x == 128) last = add_to_mark(mark, 1, groups) == groups;
  if (!block_any<CONSUMERS * 128>(last)) return false;
  clear(slice);
  // As many loads at once as registers are free for.
#pragma unroll(kTilesM* kSlicePieces <= 4 ? 4 : 1)
  for (u32 g = 0; g < groups; ++g) {
    const float4* theirs = reinterpret_cast<const float4*>(sums + u64(g) * kSliceBytes);
#pragma unroll
    for (int t = 0; t < kTilesM; ++t) {
      if (!has_rows(args, row, t)) continue;
#pragma unroll
      for (int p = 0; p < kSlicePieces; ++p) {
        add_piece(&slice[t][p * 4], __ldcg(theirs + (t * kSlicePieces + p) * kStride));
      }
    }
  }
  return true;
}

// Rows of C from this block's accumulators: all there is to them, or a part of the sum.
template <int kCount>
__device__ __forceinline__ void store_tile(StoreBuffer (&buffers)[2], u32& half,
                                           float (&acc)[kTilesM][kCount], const WgmmaArgs& args,
                                           SharedMemory& shared, const Unit& unit, int row) {
  if constexpr (SPLIT_K == 1) {
    store_rows(buffers, half, acc, args, row, unit.col);
  } else if constexpr (kParts == 1) {
    if (add_groups(acc, args, unit, 0, row)) store_rows(buffers, half, acc, args, row, unit.col);
  } else {
    float slice[kTilesM][kSliceAccumulators];
    add_cluster(slice, acc, args, shared, row);
    const u32 rank = cluster_rank();
    bool complete = true;
    if constexpr (kGrouped) complete = add_groups(slice, args, unit, rank, row);
    if (complete) store_rows(buffers, half, slice, args, row, unit.col + int(rank) * kSliceN);
    cluster_wait();
  }
}

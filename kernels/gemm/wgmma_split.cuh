// Split k: the sum of all parts of a tile of C, always in the same order. Either the parts are the
// blocks of a cluster, which read each other's accumulators and add up a slice of columns each; or
// they are blocks of their own, which share loads in a cluster with other tiles' or do not: they
// meet in the workspace (split.cuh) and add up a share of the tile each.
//
// In both places a thread's accumulators lie in pieces of four, beside those of its neighbours, so
// that whoever reads one finds its places of C.

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

// Two neighbours of a row of C, where they exist.
__device__ __forceinline__ void store_pair(const GemmArgs& args, int row, int col, float2 v) {
  if (!exists(row, args.m) || !exists(col, args.n)) return;
  const i64 index = row * args.ldc + col;
  const bool both = exists(col + 1, args.n);
  if (ALIGN_C >= 2 * kOutBytes && both) {
    if constexpr (kOutBytes == 2) {
      *reinterpret_cast<u32*>(static_cast<u16*>(args.c) + index) = packed(v);
    } else {
      *reinterpret_cast<float2*>(static_cast<float*>(args.c) + index) = v;
    }
    return;
  }
  store_output(args.c, index, v.x);
  if (both) store_output(args.c, index + 1, v.y);
}

// Leaves this block's part of a tile in the workspace, waits for the others', and stores a share of
// their sum: 16 rows by 8 columns at a time, which a piece of one warp holds.
__device__ __forceinline__ void store_share(const float (&acc)[kTilesM][kAccumulators],
                                            const WgmmaArgs& args, const Unit& unit, int row) {
  constexpr int kWarps = CONSUMERS * 4;
  constexpr int kPatches = kTilesM * kPieces * kWarps;
  constexpr int kPatch = 32;   // float4
  constexpr int kAtOnce = 16;  // of the other parts' that a lane asks for
  constexpr int kTile = kPatches * kPatch;
  const u32 groups = args.split.groups;
  const u32 at = unit.id * kCluster + (kCluster > 1 ? cluster_rank() : 0);
  u8* workspace = static_cast<u8*>(args.split.workspace);
  float4* sums = reinterpret_cast<float4*>(workspace + MARK_BYTES) + u64(at) * groups * kTile;
  const u32 thread = threadIdx.x - 128;
  float4* mine = sums + unit.group * kTile + thread;
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    if (!has_rows(args, row, t)) continue;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const float* piece = &acc[t][p * 4];
      mine[(t * kPieces + p) * kWarps * kPatch] = float4{piece[0], piece[1], piece[2], piece[3]};
    }
  }
  block_wait<CONSUMERS * 128>();
  if (thread == 0) meet_at_mark(reinterpret_cast<u32*>(workspace) + at, groups);
  block_wait<CONSUMERS * 128>();
  const int lane = int(thread % 32);
  for (u32 patch = unit.group + thread / 32 * groups; patch < kPatches; patch += groups * kWarps) {
    const int warp = int(patch % kWarps);
    const int piece = int(patch / kWarps);
    const int first = unit.row + warp / 4 * kConsumerRows + piece / kPieces * 64 + warp % 4 * 16;
    if (!exists(first, args.gemm.m)) continue;
    float sum[4] = {};
    const float4* from = sums + patch * kPatch + lane;
    for (u32 g = 0; g < groups; g += kAtOnce) {
      float4 theirs[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        theirs[i] = g + i < groups ? __ldcg(from + (g + i) * kTile) : float4{0, 0, 0, 0};
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) add_piece(sum, theirs[i]);
    }
    const int at_row = first + lane / 4;
    const int at_col = unit.col + piece % kPieces * 8 + lane % 4 * 2;
    store_pair(args.gemm, at_row, at_col, scaled(args.gemm, sum, 0, at_row, at_col));
    store_pair(args.gemm, at_row + 8, at_col, scaled(args.gemm, sum, 2, at_row + 8, at_col));
  }
}

// Rows of C from this block's accumulators: all there is to them, or a part of the sum.
template <int kCount>
__device__ __forceinline__ void store_tile(StoreBuffer (&buffers)[2], u32& half,
                                           float (&acc)[kTilesM][kCount], const WgmmaArgs& args,
                                           SharedMemory& shared, const Unit& unit, int row) {
  if constexpr (SPLIT_K == 1) {
    store_rows(buffers, half, acc, args, row, unit.col);
  } else if constexpr (kParts == 1) {
    if (args.split.groups > 1) {
      store_share(acc, args, unit, row);
    } else {  // k is too short for more: there is no workspace
      store_rows(buffers, half, acc, args, row, unit.col);
    }
  } else {
    float slice[kTilesM][kSliceAccumulators];
    add_cluster(slice, acc, args, shared, row);
    store_rows(buffers, half, slice, args, row, unit.col + int(cluster_rank()) * kSliceN);
    cluster_wait();
  }
}

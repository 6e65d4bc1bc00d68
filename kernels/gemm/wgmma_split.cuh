// Split k: the sum of all parts of a tile of C, always in the same order. Either the parts are the
// blocks of a cluster, which give each other what they have of a slice of columns each; or they are
// blocks of their own, which share loads in a cluster with other tiles' or do not: they meet in the
// workspace (split.cuh) and add up a share of the tile each.
//
// In both places a thread's accumulators lie in pieces of four, beside those of its neighbours, so
// that whoever reads one finds its places of C.

constexpr int kPieces = BLOCK_N / 8;  // of a thread, per instruction along m
static_assert(kSlicePieces * kParts == kPieces, "slices are whole pieces");

// Rows past the end of C are not exchanged: often most of a tile. One warp's rows of an instruction
// are 16 from `row` on.
__device__ __forceinline__ bool has_rows(const WgmmaArgs& args, int row, int t) {
  return exists(row + t * 64, args.gemm.m);
}

#if SPLIT_PARTS > 1
// A consumer warp's dealings with the warps at its place in the other blocks of the cluster, which
// have the same rows and columns of the other parts. Each writes what it has of another's slice
// into that one's shared memory; nobody waits for a whole block.
class Exchange {
 public:
  __device__ __forceinline__ Exchange(SharedMemory& shared)
      : given_(shared.given[threadIdx.x / 32 - 4]),
        landed_(shared_address(&shared.given_barriers[threadIdx.x / 32 - 4].landed)),
        read_(shared_address(&shared.given_barriers[threadIdx.x / 32 - 4].read)),
        rank_(int(cluster_rank())) {}

  // This block's slice of the sum over all parts: its own first, then as they follow it in rank.
  // There must be rows. The others answer (release) when they have what this warp gives; had it
  // nothing to give, an answer could come before this warp has waited for the one before.
  __device__ __forceinline__ void add(float (&slice)[kTilesM][kSliceAccumulators],
                                      const float (&acc)[kTilesM][kAccumulators],
                                      const WgmmaArgs& args, int row) {
    const u32 lane = threadIdx.x % 32;
    wait_until_read();
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      if (part == rank_) {
        keep(part, acc, slice);
      } else {
        give(part, acc, args, row);
      }
    }
    if (lane == 0) {
      u32 bytes = 0;
#pragma unroll
      for (int t = 0; t < kTilesM; ++t) {
        if (has_rows(args, row, t)) bytes += (kParts - 1) * u32(sizeof(given_.pieces[0][0]));
      }
      barrier_expect(landed_, bytes);
    }
    barrier_wait(landed_, parity_);
    parity_ ^= 1;
#pragma unroll
    for (int i = 0; i < kParts - 1; ++i) {
#pragma unroll
      for (int t = 0; t < kTilesM; ++t) {
        if (!has_rows(args, row, t)) continue;
#pragma unroll
        for (int p = 0; p < kSlicePieces; ++p) {
          add_piece(&slice[t][p * 4], given_.pieces[i][t][p][lane]);
        }
      }
    }
  }

  // The others may give again. Behind the last use of what add() read.
  __device__ __forceinline__ void release() {
    __syncwarp();
    const int lane = int(threadIdx.x % 32);
    if (lane < kParts - 1) {
      const int part = rank_ + 1 + lane;
      barrier_arrive_at(read_, part < kParts ? part : part - kParts);
    }
  }

  // Before this block gives again, or ends: the others speak to its barriers until then.
  __device__ __forceinline__ void wait_until_read() { barrier_wait(read_, parity_ ^ 1); }

 private:
  __device__ __forceinline__ void keep(int part, const float (&acc)[kTilesM][kAccumulators],
                                       float (&slice)[kTilesM][kSliceAccumulators]) {
#pragma unroll
    for (int t = 0; t < kTilesM; ++t) {
#pragma unroll
      for (int r = 0; r < kSliceAccumulators; ++r) {
        slice[t][r] = acc[t][part * kSliceAccumulators + r];
      }
    }
  }

  __device__ __forceinline__ void give(int part, const float (&acc)[kTilesM][kAccumulators],
                                       const WgmmaArgs& args, int row) {
    const int place = rank_ > part ? rank_ - part : rank_ - part + kParts;  // from 1 on
    const u32 there =
        cluster_address(shared_address(&given_.pieces[place - 1][0][0][threadIdx.x % 32]), part);
    const u32 landed = cluster_address(landed_, part);
#pragma unroll
    for (int t = 0; t < kTilesM; ++t) {
      if (!has_rows(args, row, t)) continue;
#pragma unroll
      for (int p = 0; p < kSlicePieces; ++p) {
        const float* piece = &acc[t][(part * kSlicePieces + p) * 4];
        give_floats(there + (t * kSlicePieces + p) * u32(sizeof(given_.pieces[0][0][0])),
                    float4{piece[0], piece[1], piece[2], piece[3]}, landed);
      }
    }
  }

  Given& given_;
  u32 landed_;
  u32 read_;
  int rank_;
  u32 parity_ = 0;
};
#else
// No cluster shares k: there is nothing to say.
struct Exchange {
  __device__ __forceinline__ explicit Exchange(SharedMemory&) {}
  __device__ __forceinline__ void wait_until_read() {}
};
#endif

// Two neighbours of a row of the product, where they exist.
__device__ __forceinline__ void store_pair(const GemmArgs& args, int row, int col, float2 v) {
  if (!exists(row, args.m) || !exists(col, args.n)) return;
  const i64 index = index_of(args, row, col);
  const bool both = exists(col + 1, args.n);
  if (!TRANSPOSED && ALIGN_C >= 2 * kOutBytes && both) {
    if constexpr (kOutBytes == 2) {
      *reinterpret_cast<u32*>(static_cast<u16*>(args.c) + index) = packed(v);
    } else {
      *reinterpret_cast<float2*>(static_cast<float*>(args.c) + index) = v;
    }
    return;
  }
  store_output(args.c, index, v.x);
  if (both) store_output(args.c, index + column_step(args), v.y);
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
__device__ __forceinline__ void store_tile(StoreBuffers& buffers, u32& filled,
                                           float (&acc)[kTilesM][kAccumulators],
                                           const WgmmaArgs& args, Exchange& exchange,
                                           const Unit& unit, int row, bool paced) {
#if SPLIT_PARTS > 1
  const bool speaks = has_rows(args, row, 0);  // else no warp that it would speak to has any
  if (!TRANSPOSED && !speaks) return;
  float slice[kTilesM][kSliceAccumulators];
  if (speaks) exchange.add(slice, acc, args, row);
  store_rows(buffers, filled, slice, args, row, unit.col + int(cluster_rank()) * kSliceN, paced);
  if (speaks) exchange.release();
#elif SPLIT_K > 1
  if (args.split.groups > 1) {
    store_share(acc, args, unit, row);
  } else {  // k is too short for more: there is no workspace
    store_rows(buffers, filled, acc, args, row, unit.col, paced);
  }
#else
  store_rows(buffers, filled, acc, args, row, unit.col, paced);
#endif
}

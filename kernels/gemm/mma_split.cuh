// What a block works on at once, and the sum over the blocks that share a tile of C (split.cuh).

// A range of k of a tile of C.
struct Unit {
  u32 id;  // of the tile
  int part;
  int first;  // k tile
  int k_tiles;
  int k;  // what there is of it in those
};

#if SPLIT_K > 1

static_assert(!GATED, "an activation needs the whole sum over k");

typedef SplitMmaArgs Args;

__device__ __forceinline__ u32 units_of(const Args& args) {
  return u32(args.tiles_m) * u32(args.tiles_n) * u32(args.split.groups);
}

// The parts of a tile follow each other, so that they run at the same time.
__device__ __forceinline__ Unit unit_of(u32 index, const Args& args) {
  const SplitArgs& split = args.split;
  Unit unit;
  unit.id = divided(index, split.of_groups);
  unit.part = int(index - unit.id * split.groups);
  const PartRange range(unit.part, split.part_steps, split.longer_parts);
  unit.first = range.first;
  unit.k_tiles = range.count;
  unit.k = int(min(u32(unit.k_tiles) * BLOCK_K, u32(args.k - unit.first * BLOCK_K)));
  return unit;
}

// A thread's accumulators lie in pieces of four, beside those of its neighbours.
constexpr int kTilePieces = kTilesM * kTilesN * THREADS;
static_assert(kTilePieces * 16 == BLOCK_M * BLOCK_N * 4, "sums of a tile");

// Parts that are read at once, for a strip of 16 rows: as many as registers are free for.
constexpr int kFreePieces = kTilesN < 16 ? 16 / kTilesN : 1;
constexpr int kPartsAtOnce = kFreePieces < SPLIT_K ? kFreePieces : SPLIT_K;

__device__ __forceinline__ void add_strip(float (&acc)[kTilesN][4], const float4* strip) {
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) add_piece(acc[j], __ldcg(strip + j * THREADS));
}

// True for the last of a tile's blocks to come: its accumulators are the whole sums now. `exact` is
// any block's. Rows past the end of C are not exchanged; the warp's are those from `row` on.
__device__ __forceinline__ bool add_parts(float (&acc)[kTilesM][kTilesN][4], bool& exact,
                                          const Args& args, const Unit& unit, i64 row) {
  const u32 groups = args.split.groups;
  if (groups == 1) return true;  // k is too short for more: there is no workspace
  u8* workspace = static_cast<u8*>(args.split.workspace);
  float4* sums = reinterpret_cast<float4*>(workspace + MARK_BYTES) +
                 u64(unit.id) * groups * kTilePieces + threadIdx.x;
  float4* mine = sums + u64(unit.part) * kTilePieces;
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
    if (row + i * 16 >= args.m) continue;
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      const float* piece = acc[i][j];
      mine[(i * kTilesN + j) * THREADS] = float4{piece[0], piece[1], piece[2], piece[3]};
    }
  }
  __syncthreads();
  bool last = false;
  bool any_exact = false;
  if (threadIdx.x == 0) {
    u32* mark = reinterpret_cast<u32*>(workspace) + unit.id;
    const u32 tokens = add_to_mark(mark, exact ? 0x10001 : 1, groups);
    last = (tokens & 0xffff) == groups;
    any_exact = tokens > 0xffff;  // counted in the upper half
  }
  if (!__syncthreads_or(last)) return false;
  if constexpr (DTYPE == DTYPE_FP32) exact = __syncthreads_or(any_exact);
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
    if (row + i * 16 >= args.m) continue;
    clear(acc[i]);
    const float4* strip = sums + i * kTilesN * THREADS;
    if (groups == SPLIT_K) {
#pragma unroll(kPartsAtOnce)
      for (int g = 0; g < SPLIT_K; ++g) add_strip(acc[i], strip + u64(g) * kTilePieces);
    } else {
#pragma unroll 1
      for (u32 g = 0; g < groups; ++g) add_strip(acc[i], strip + u64(g) * kTilePieces);
    }
  }
  return true;
}

#else

typedef GemmArgs Args;

__device__ __forceinline__ u32 units_of(const Args& args) {
  return u32(args.tiles_m) * u32(args.tiles_n);
}

__device__ __forceinline__ Unit unit_of(u32 index, const Args& args) {
  return {index, 0, 0, args.k / BLOCK_K + (args.k % BLOCK_K != 0), args.k};
}

__device__ __forceinline__ bool add_parts(float (&)[kTilesM][kTilesN][4], bool&, const Args&,
                                          const Unit&, i64) {
  return true;
}

#endif

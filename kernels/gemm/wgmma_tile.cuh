// What lies in a block's shared memory on Hopper's wgmma path.
//
// Constants of the host twin beside those of common.cuh and one per parameter:
//   WGMMA_SHAPE, WGMMA_REGISTERS, WGMMA_OPERANDS   the text of the instruction for this block_n
//   PRODUCER_REGISTERS, CONSUMER_REGISTERS         per thread; 0: as launched
//   CHUNK_N, REST_N                                columns of the product that one store moves, and
//                                                  the last one of a row
//   SPLIT_PARTS                                    blocks of a cluster that share a tile's k
//   STORES_IN_RING                                 C leaves through a stage that has been read
//   TRANSPOSED                                     the product is C's transpose, A is C's B: a
//                                                  tile's rows are columns of C
//   SMEM_...                                       the layout of shared memory

constexpr int kCluster = CLUSTER_M * CLUSTER_N;
constexpr int kParts = SPLIT_PARTS;
constexpr bool kGrouped = SPLIT_K > kParts;  // clusters meet in the workspace
static_assert(kCluster == 1 || kParts == 1, "a cluster shares loads or k");
static_assert(kParts == 1 || kParts == SPLIT_K, "a cluster shares all of k");
constexpr bool kMeets = kCluster * kParts > 1;  // blocks speak to each other's barriers
constexpr int kConsumerRows = PINGPONG ? BLOCK_M : BLOCK_M / CONSUMERS;
constexpr int kTilesM = kConsumerRows / 64;  // instructions along m
// One instruction multiplies with the columns of all weights, the gates first: of C's columns c the
// gates are accumulator c / 8 * 4 and on, their factors kUpAccumulator further.
constexpr int kColumns = kWeights * BLOCK_N;
constexpr int kAccumulators = kColumns / 2;  // per thread and instruction
constexpr int kUpAccumulator = (kWeights - 1) * BLOCK_N / 2;
constexpr int kSliceN = BLOCK_N / kParts;  // columns of C that this block stores
constexpr int kSliceAccumulators = kAccumulators / kParts;
static_assert(!GATED || SPLIT_K == 1, "an activation needs the whole sum over k");
static_assert(!TRANSPOSED || (!GATED && kOutBytes == 2), "as matrices of 8 by 8 are transposed");
static_assert(!PACKED || (!GATED && !TRANSPOSED), "both operands of a plain product");
constexpr int kStageConsumers = PINGPONG ? 1 : CONSUMERS;

typedef OperandTile<A_K_MAJOR, BLOCK_M> TileA;
typedef OperandTile<B_K_MAJOR, kColumns> TileB;
typedef OperandTile<B_K_MAJOR, BLOCK_N> WeightsTile;  // the part of it that one matrix fills
static_assert(!GATED || B_K_MAJOR || BLOCK_N % kSlabElements == 0, "a slab is of one matrix");

constexpr int kStepsK = BLOCK_K / TileA::kStepK;

struct Stage {
  TileA a;
  TileB b;
};

// What one store moves, in the order in which C has it: a warp's rows, or, where these are columns
// of C, those of a consumer's four warps, so that it moves whole lines.
constexpr int kStoreWarps = TRANSPOSED ? 4 : 1;
constexpr int kStoreRows = TRANSPOSED ? CHUNK_N : 16;
constexpr int kStoreColumns = TRANSPOSED ? 64 : CHUNK_N;
constexpr int kStorers = CONSUMERS * 4 / kStoreWarps;

struct StoreBuffer {
  u8 rows[kStoreRows][kStoreColumns * kOutBytes];
};

constexpr int kSlicePieces = kSliceN / 8;  // of a thread, per instruction along m

#if SPLIT_PARTS > 1
// What one warp is given of its slice by the other parts of the cluster: first by the part behind
// this one in rank, and so on round.
struct Given {
  float4 pieces[kParts - 1][kTilesM][kSlicePieces][32];
};

// And how it and the warps at its place in the other blocks know of it.
struct GivenBarriers {
  u64 landed;  // all that the others give is here
  u64 read;    // they have read what this warp gave them
};
#endif

constexpr int kChunks = (kSliceN + CHUNK_N - 1) / CHUNK_N;  // of a row of this block's columns
// One is filled while the other is stored; one alone where C leaves through a stage all at once.
constexpr int kStoreBuffers = STORES_IN_RING && kTilesM * kChunks == 1 ? 1 : 2;
typedef StoreBuffer StoreBuffers[kStoreBuffers];

struct SharedMemory {
  Stage stages[STAGES];
#if !STORES_IN_RING
  StoreBuffers stores[kStorers];
#endif
#if SPLIT_PARTS > 1
  Given given[CONSUMERS * 4];
#endif
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 turn[2];  // pingpong: the other consumer has all of its tile's stages
#if SPLIT_PARTS > 1
  GivenBarriers given_barriers[CONSUMERS * 4];
#endif
};

// Those that the first loads need, by one thread.
__device__ __forceinline__ void set_up_opening(SharedMemory& shared) {
#pragma unroll
  for (int s = 0; s < kOpening; ++s) barrier_init(shared_address(&shared.full[s]), 1);
  barrier_init_fence();
}

// All other barriers.
__device__ __forceinline__ void set_up_barriers(SharedMemory& shared) {
#pragma unroll
  for (int s = 0; s < STAGES; ++s) {
    if (s >= kOpening) barrier_init(shared_address(&shared.full[s]), 1);
    barrier_init(shared_address(&shared.empty[s]), kStageConsumers * kCluster);
  }
  barrier_init(shared_address(&shared.turn[0]), 4);  // a consumer's warps
  barrier_init(shared_address(&shared.turn[1]), 4);
#if SPLIT_PARTS > 1
#pragma unroll
  for (int w = 0; w < CONSUMERS * 4; ++w) {
    barrier_init(shared_address(&shared.given_barriers[w].landed), 1);
    barrier_init(shared_address(&shared.given_barriers[w].read), kParts - 1);
  }
#endif
  barrier_init_fence();
}

static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(sizeof(TileB) == SMEM_B_BYTES, "B tile");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert((kChunks - 1) * CHUNK_N + REST_N == kSliceN, "stores");
static_assert(sizeof(StoreBuffer) == SMEM_STORE_BYTES, "store buffer");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");
static_assert(!STORES_IN_RING || (!PINGPONG && sizeof(Stage) >= sizeof(StoreBuffers[kStorers])),
              "stores lie in a stage that all consumers have read");

typedef Ring<STAGES> RingPosition;

// This block's place in its cluster.
struct ClusterPlace {
  int m;
  int n;

  __device__ __forceinline__ ClusterPlace() {
    const int rank = kCluster == 1 ? 0 : int(cluster_rank());
    m = rank % CLUSTER_M;
    n = rank / CLUSTER_M;
  }
};

// What a block works on at once: a tile of C, and of its k tiles `count` from `first` on.
struct Unit {
  u32 id;   // of the tile
  int row;  // of C, where this block's tile begins
  int col;
  int group;  // which of its parts, where these meet in the workspace
  int first;
  int count;
  int start;  // which of them comes first; behind the last one the others follow
};

__device__ __forceinline__ Unit unit_of(u32 index, const WgmmaArgs& args, ClusterPlace place,
                                        int k_tiles) {
  Unit unit;
  // All tiles' first parts, then their second ones: neighbours share rows or columns, of the same
  // k.
  const u32 tiles = u32(args.gemm.tiles_m) * u32(args.gemm.tiles_n);
  unit.group = kGrouped ? int(divided(index, args.split.of_tiles)) : 0;
  unit.id = index - u32(unit.group) * tiles;
  const TileIndex tile = tile_of(unit.id, args.gemm);
  unit.row = (tile.m * CLUSTER_M + place.m) * BLOCK_M;
  unit.col = (tile.n * CLUSTER_N + place.n) * BLOCK_N;
  if constexpr (SPLIT_K == 1) {
    unit.first = 0;
    unit.count = k_tiles;
  } else {
    // A cluster's part computes its range: the argument has it in a further line.
    const PartRange range =
        kParts > 1 ? PartRange(int(cluster_rank()), k_tiles / kParts, k_tiles % kParts)
                   : PartRange(unit.group, args.split.part_steps, args.split.longer_parts);
    unit.first = range.first;
    // Where there are fewer k tiles than parts, the others load one past the end: zeros.
    unit.count = max(range.count, 1);
  }
  unit.start = int(unit.id & u32(args.gemm.starts)) * args.gemm.stagger;
  return unit;
}

// The first unit of this block, and how far it is to the next.
__device__ __forceinline__ u32 first_unit(const WgmmaArgs& args) {
  const u32 cluster = blockIdx.x / (kCluster * kParts);
  return kMeets && cluster < WgmmaArgs::kPlaced ? args.first_units[cluster] : cluster;
}
__device__ __forceinline__ u32 next_unit() { return gridDim.x / (kCluster * kParts); }

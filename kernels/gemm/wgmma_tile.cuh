// What lies in a block's shared memory on Hopper's wgmma path.
//
// Constants of the host twin beside those of common.cuh and one per parameter:
//   WGMMA_SHAPE, WGMMA_REGISTERS, WGMMA_OPERANDS   the text of the instruction for this block_n
//   PRODUCER_REGISTERS, CONSUMER_REGISTERS         per thread; 0: as launched
//   CHUNK_N                                        columns of C that one store moves
//   SMEM_...                                       the layout of shared memory

constexpr int kCluster = CLUSTER_M * CLUSTER_N;
constexpr int kConsumerRows = PINGPONG ? BLOCK_M : BLOCK_M / CONSUMERS;
constexpr int kTilesM = kConsumerRows / 64;  // instructions along m
// One instruction multiplies with the columns of all weights, the gates first: of C's columns c the
// gates are accumulator c / 8 * 4 and on, their factors kUpAccumulator further.
constexpr int kColumns = kWeights * BLOCK_N;
constexpr int kAccumulators = kColumns / 2;  // per thread and instruction
constexpr int kUpAccumulator = (kWeights - 1) * BLOCK_N / 2;
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

constexpr int kChunkBytes = CHUNK_N * kOutBytes;  // of a row in the epilogue's buffers

struct StoreBuffer {
  u8 rows[16][kChunkBytes];
};

struct SharedMemory {
  Stage stages[STAGES];
  StoreBuffer stores[CONSUMERS * 4][2];  // two per warp: one is filled while the other is stored
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 turn[2];  // pingpong: the other consumer has all of its tile's stages
};

static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(sizeof(TileB) == SMEM_B_BYTES, "B tile");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(StoreBuffer) == SMEM_STORE_BYTES, "store buffer");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");

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

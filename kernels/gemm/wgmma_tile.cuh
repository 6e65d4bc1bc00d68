// What lies in a block's shared memory on Hopper's wgmma path, and where in it a role stands.
//
// Constants of the host twin beside those of common.cuh and one per parameter:
//   WGMMA_SHAPE, WGMMA_REGISTERS, WGMMA_OPERANDS   the text of the instruction for this block_n
//   PRODUCER_REGISTERS, CONSUMER_REGISTERS         per thread; 0: as launched
//   CHUNK_N                                        columns of C that one store moves
//   SPLIT_PARTS                                    blocks of a cluster that share a tile's k
//   MARK_BYTES                                     of the workspace, before the sums
//   SMEM_...                                       the layout of shared memory

constexpr int kCluster = CLUSTER_M * CLUSTER_N;
constexpr int kParts = SPLIT_PARTS;
constexpr bool kGrouped = SPLIT_K > kParts;  // and clusters that share it
static_assert(kCluster == 1 || SPLIT_K == 1, "a cluster shares loads or k");
constexpr int kSlabElements = 128 / kElementBytes;  // one row of a swizzled slab: 128 bytes
constexpr int kStepK = 32 / kElementBytes;          // depth of one instruction
constexpr int kStepsK = BLOCK_K / kStepK;
constexpr int kConsumerRows = PINGPONG ? BLOCK_M : BLOCK_M / CONSUMERS;
constexpr int kTilesM = kConsumerRows / 64;  // instructions along m
constexpr int kAccumulators = BLOCK_N / 2;   // per thread and instruction
constexpr int kSliceN = BLOCK_N / kParts;    // columns of C that this block stores
constexpr int kSliceAccumulators = kSliceN / 2;
constexpr int kStageConsumers = PINGPONG ? 1 : CONSUMERS;

// An operand's tile in shared memory: slabs 128 bytes wide in the contiguous direction, each
// `kRows` rows deep in the other one, swizzled in groups of 8 rows.
template <bool kKMajor, int kExtent>
struct OperandTile {
  static constexpr int kRows = kKMajor ? kExtent : BLOCK_K;
  static constexpr int kWidth = kKMajor ? BLOCK_K : kExtent;
  static constexpr int kSlabs = (kWidth + kSlabElements - 1) / kSlabElements;
  static constexpr int kSlabBytes = kRows * 128;
  u8 bytes[kSlabs * kSlabBytes];

  // What the matrix instruction reads: swizzle of 128 bytes, 1024 bytes between groups of 8 rows,
  // and for an operand that is contiguous along m or n the bytes from slab to slab. An address has
  // 18 bits there: in a cluster, the higher ones name the block.
  static __device__ __forceinline__ u64 descriptor(u32 address) {
    return u64(1) << 62 | u64(1024 >> 4) << 32 | u64(kKMajor ? 0 : kSlabBytes >> 4) << 16 |
           (address & 0x3FFFF) >> 4;
  }
  // Byte offset of instruction `step` along k, `first` rows or columns into the tile.
  static __device__ __forceinline__ u32 offset(int first, int step) {
    if constexpr (kKMajor) {
      constexpr int kPerSlab = kSlabElements / kStepK;
      return u32((step / kPerSlab) * kSlabBytes + first * 128 + (step % kPerSlab) * 32);
    } else {
      return u32((first / kSlabElements) * kSlabBytes + step * kStepK * 128);
    }
  }
};

typedef OperandTile<A_K_MAJOR, BLOCK_M> TileA;
typedef OperandTile<B_K_MAJOR, BLOCK_N> TileB;

struct Stage {
  TileA a;
  TileB b;
};

constexpr int kChunkBytes = CHUNK_N * kOutBytes;  // of a row in the epilogue's buffers

struct StoreBuffer {
  u8 rows[16][kChunkBytes];
};

// What a cluster's parts add up, once the ring is empty.
constexpr int kSumBytes = kParts > 1 ? BLOCK_M* BLOCK_N * 4 : 0;

struct SharedMemory {
  union {
    Stage stages[STAGES];
    u8 sums[kSumBytes > 0 ? kSumBytes : 1];
  };
  StoreBuffer stores[CONSUMERS * 4][2];  // two per warp: one is filled while the other is stored
  u64 full[STAGES];
  u64 empty[STAGES];
  u64 turn[2];  // pingpong: the other consumer has all of its tile's stages
};

static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(sizeof(TileB) == SMEM_B_BYTES, "B tile");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(kSumBytes == SMEM_SUM_BYTES, "sums");
static_assert(sizeof(StoreBuffer) == SMEM_STORE_BYTES, "store buffer");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");

// Where in the ring a role stands, and the parity that its barriers have there.
struct RingPosition {
  u32 stage;
  u32 parity;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
  __device__ __forceinline__ void advance(u32 count) {
    stage += count;
    parity ^= stage / STAGES & 1;
    stage %= STAGES;
  }
};

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
  u32 id;  // of the tile
  TileIndex tile;
  int group;  // which of the clusters on this tile
  int first;
  int count;
};

__device__ __forceinline__ Unit unit_of(u32 index, const WgmmaArgs& args, int k_tiles) {
  Unit unit;
  unit.id = kGrouped ? divided(index, args.of_groups) : index;
  unit.group = kGrouped ? int(index - unit.id * args.groups) : 0;
  unit.tile = tile_of(unit.id, args.gemm);
  if constexpr (SPLIT_K == 1) {
    unit.first = 0;
    unit.count = k_tiles;
  } else {
    const int part = unit.group * kParts + (kParts > 1 ? int(cluster_rank()) : 0);
    unit.first = part * args.part_steps + min(part, args.longer_parts);
    // Where there are fewer k tiles than parts, the others load one past the end: zeros.
    unit.count = max(args.part_steps + (part < args.longer_parts), 1);
  }
  return unit;
}

// The first unit of this block, and how far it is to the next.
__device__ __forceinline__ u32 first_unit() { return blockIdx.x / (kCluster * kParts); }
__device__ __forceinline__ u32 next_unit() { return gridDim.x / (kCluster * kParts); }

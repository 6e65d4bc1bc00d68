// What lies in the shared memory of the mma_bulk kernel, and which rows a warp's fragments are of.
//
// Constants of the host twin beside those of common.cuh: BLOCK_M, BLOCK_N, BLOCK_K, STAGES,
// WARPS_M, WARPS_N, WARPS_K, SPLIT_K, BOXES, THREADS, MIN_BLOCKS, and the shared-memory layout
// SMEM_SLOT_BYTES, SMEM_STAGE_BYTES, SMEM_RING_BYTES, SMEM_BYTES.

constexpr int kWarps = WARPS_M * WARPS_N * WARPS_K;
constexpr int kWarpM = BLOCK_M / WARPS_M;
constexpr int kWarpN = BLOCK_N / WARPS_N;
constexpr int kTilesM = kWarpM / 16;  // 16 x 8 instruction tiles of a warp
constexpr int kTilesN = kWarpN / 8;
constexpr int kStepBytes = 32;  // k of one instruction, in bytes

// A row is read in chunks, each shared out among four lanes. Which of k an instruction's words are
// does not matter as long as it is the same for A and B, so of a chunk a lane has 32 bytes that
// follow each other: it reads as much at once as the rows' alignment allows, and words that begin
// on 2 bytes share what they are made of. Rows an odd number of words apart lie in different banks
// then. Where rows begin on 8 bytes that would be pairs of words, which have to be taken apart for
// A's registers: there a lane has every fourth word.
constexpr int kChunkBytes = 128;
constexpr int kChunkK = kChunkBytes / kElementBytes;
constexpr int kChunkSteps = kChunkBytes / kStepBytes;
constexpr bool kLanesHavePieces = ALIGN_A < 8 || ALIGN_B < 8;
constexpr int kLaneStride = kLanesHavePieces ? kChunkBytes / 4 : 4;  // from lane to lane
constexpr int kWordStride = kLanesHavePieces ? 4 : 16;               // from word to word of a lane

static_assert(A_K_MAJOR && B_K_MAJOR, "rows along k");
static_assert(THREADS == 32 * kWarps, "threads");
static_assert(BLOCK_K * kElementBytes % kChunkBytes == 0,
              "a row begins alike in each of its k tiles");

// A row of a tile lies in a slot: from where a line begins, so that it fits wherever in one its
// first byte is, or, in boxes, from where a piece of 16 bytes does. Rows of A, then of B.
constexpr int kSlots = BLOCK_M + BLOCK_N;
constexpr int kSlotBytes = BLOCK_K * kElementBytes + (BOXES ? 16 : 128);

// A box has a row in so many, and begins on a line.
constexpr int kRowsApartA = BOXES ? 16 / ALIGN_A : 1;
constexpr int kRowsApartB = BOXES ? 16 / ALIGN_B : 1;
constexpr int kBoxes = kRowsApartA + kRowsApartB;
constexpr int kBoxBytesA = (BLOCK_M / kRowsApartA * kSlotBytes + 127) / 128 * 128;
constexpr int kBoxBytesB = (BLOCK_N / kRowsApartB * kSlotBytes + 127) / 128 * 128;
constexpr int kOperandBytesA = kRowsApartA * kBoxBytesA;
constexpr int kStageBytes = kOperandBytesA + kRowsApartB * kBoxBytesB;

// The eight rows of a group, which a warp reads at once, follow each other at a distance of so
// many, and a block's rows are taken apart into as many classes: two where rows begin on 2 bytes,
// so that those of a group are whole words apart, and where lanes have every fourth word and rows
// begin on 8 bytes, so that they are an odd multiple of 16 bytes apart.
template <int kAlign, int kGroups>
__device__ constexpr int classes() {
  const bool apart = kAlign == 2 || (kAlign == 8 && !kLanesHavePieces);
  return apart && kGroups % 2 == 0 ? 2 : 1;
}
constexpr int kClassesA = classes<ALIGN_A, BLOCK_M / 8>();
constexpr int kClassesB = classes<ALIGN_B, BLOCK_N / 8>();

// Of the tile's rows (or columns) the `i`-th of group `group`.
template <int kClasses>
__device__ __forceinline__ int row_of_group(int group, int i) {
  return group / kClasses * (8 * kClasses) + i * kClasses + group % kClasses;
}

typedef float Accumulators[kTilesM][kTilesN][4];
constexpr int kChains = kTilesM * kTilesN <= 4 ? 2 : 1;  // sets of sums

// A warp's place: its first groups of rows and columns, and which steps along k it has.
struct WarpPlace {
  int group_m;
  int group_n;
  int k;

  __device__ __forceinline__ WarpPlace() {
    const int warp = int(threadIdx.x / 32);
    group_m = warp / WARPS_N % WARPS_M * (2 * kTilesM);
    group_n = warp % WARPS_N * kTilesN;
    k = warp / (WARPS_M * WARPS_N);
  }
};

// Sums of a tile, row by row, of the warps at each place along k. By their pitch the rows that a
// warp lays out at once lie in different banks, where there are one or two classes of rows.
constexpr int kSumPitch = BLOCK_N + 8;
constexpr int kShareRows = BLOCK_M / SPLIT_K;  // of a tile, that a part adds up and stores
static_assert(kShareRows * SPLIT_K == BLOCK_M, "parts have as many rows each");

struct SharedMemory {
  union {
    u8 stages[STAGES][kStageBytes];
    float sums[WARPS_K][BLOCK_M][kSumPitch];
  } ring;
#if SPLIT_K > 1
  float given[SPLIT_K - 1][kShareRows][BLOCK_N];  // by the other parts, in the order of their ranks
#endif
  u64 full[STAGES];
#if SPLIT_K > 1
  u64 landed;  // all that the others give is here
#endif
};

static_assert(kSlotBytes == SMEM_SLOT_BYTES, "slot");
static_assert(kStageBytes == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(SharedMemory::ring) == SMEM_RING_BYTES, "ring");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");

// Where a block's tile of C begins.
struct TilePlace {
  int row;
  int col;

  __device__ __forceinline__ explicit TilePlace(TileIndex tile)
      : row(tile.m * BLOCK_M), col(tile.n * BLOCK_N) {}
};

__device__ __forceinline__ int lane() { return int(threadIdx.x % 32); }

// How far behind a line of 128 bytes an operand's row begins. Rows that do not exist are counted
// on.
__device__ __forceinline__ u32 phase(const void* matrix, int row, i64 leading) {
  return (u32(u64(matrix)) + u32(row) * u32(leading) * kElementBytes) & 127;
}

// Where the `row`-th of a tile's rows begins in its operand's part of a stage: in a slot, among
// those of its box where there are such, or behind the rows before it in a run (rows_are_runs).
template <int kRowsApart, int kBoxBytes>
__device__ __forceinline__ u32 place_in_stage(const void* matrix, int first, int row, i64 leading,
                                              bool in_run) {
  if constexpr (BOXES) {
    const u32 box = u32(row) % kRowsApart;
    return box * kBoxBytes + u32(row) / kRowsApart * kSlotBytes +
           (box * u32(leading) * kElementBytes & 15);
  }
  if (in_run) return phase(matrix, first, leading) + u32(row) * u32(leading) * kElementBytes;
  return u32(row) * kSlotBytes + phase(matrix, first + row, leading);
}

// The shared memory of the mma kernel: tiles in a ring of stages, and the warps' buffers that later
// take their place.

constexpr int kWarpM = BLOCK_M / WARPS_M;
constexpr int kWarpN = BLOCK_N / WARPS_N;
constexpr int kStepBytes = 32;                      // k of one instruction, in bytes
constexpr int kStepK = kStepBytes / kElementBytes;  // 16 or 8 elements
constexpr int kSteps = BLOCK_K / kStepK;            // per k tile
constexpr int kTilesM = kWarpM / 16;                // 16 x 8 instruction tiles of a warp
constexpr int kTilesC = kWarpN / 8;                 // of its columns of C
constexpr int kTilesN = kWeights * kTilesC;         // of the products for them, the gates first
constexpr int kChunkElements = 16 / kElementBytes;

static_assert(THREADS == 32 * WARPS_M * WARPS_N, "threads");
static_assert(kSteps >= 2 && kSteps % 2 == 0, "two fragment buffers alternate over an even number");

// One operand's tile in shared memory: rows of 16-byte chunks, the chunk index XORed with the row
// so that the eight rows of one ldmatrix lie in eight different bank groups.
template <bool kKMajor, int kExtent>
struct Tile {
  static constexpr int kRows = kKMajor ? kExtent : BLOCK_K;
  static constexpr int kPitch = (kKMajor ? BLOCK_K : kExtent) * kElementBytes;
  static constexpr int kChunks = kPitch / 16;
  static constexpr int kBytes = kRows * kPitch;
  static_assert(kChunks % 8 == 0 || 8 % kChunks == 0, "swizzle");

  u8 bytes[kBytes];

  static __device__ __forceinline__ int swizzle(int row) {
    if constexpr (!kKMajor && kElementBytes == 4) {
      return ((row & 3) << 1) & (kChunks - 1);  // read word by word: 4 rows x 2 chunks at a time
    } else if constexpr (kChunks >= 8) {
      return row & 7;
    } else {
      return (row / (8 / kChunks)) & (kChunks - 1);
    }
  }
  static __device__ __forceinline__ u32 offset(int row, int chunk) {
    return u32(row * kPitch + ((chunk ^ swizzle(row)) << 4));
  }
};

typedef Tile<A_K_MAJOR, BLOCK_M> TileA;
typedef Tile<B_K_MAJOR, BLOCK_N> TileB;

struct Stage {
  TileA a;
  TileB b[kWeights];
};

struct WarpBuffer {
  u8 rows[16][SMEM_WARP_PITCH];
};

// The host twin's layout and the types above must be the same thing.
static_assert(sizeof(TileA) == SMEM_A_BYTES, "A tile");
static_assert(kWeights * sizeof(TileB) == SMEM_B_BYTES, "B tiles");
static_assert(sizeof(TileA) == SMEM_B_OFFSET, "B offset");
static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(WarpBuffer) == SMEM_WARP_BYTES, "epilogue buffer of a warp");
static_assert(SMEM_WARP_PITCH == kWarpN * kOutBytes + 16, "epilogue row");
static_assert(SMEM_BYTES == (STAGES * sizeof(Stage) > WARPS_M * WARPS_N * sizeof(WarpBuffer)
                                 ? STAGES * sizeof(Stage)
                                 : WARPS_M * WARPS_N * sizeof(WarpBuffer)),
              "shared memory");

// What lies in a block's shared memory where fp32 is multiplied as bf16 parts: two rings. In the
// first are the operands as they come from memory; in the second is B, cut into its parts, as the
// matrix instruction reads it. A's parts live in registers only.
//
// Constants of the host twin beside those of common.cuh and one per parameter:
//   WGMMA_SHAPE, WGMMA_REGISTERS, WGMMA_OPERANDS,   the text of the instruction for the columns of
//   WGMMA_SOURCES, WGMMA_ACCUMULATE                 one chain
//   HELPER_REGISTERS, CONSUMER_REGISTERS            per thread; 0: as launched
//   SMEM_...                                        the layout of shared memory

constexpr int kConsumers = BLOCK_M / 64;         // warpgroups that multiply 64 rows each
constexpr int kHelpers = (1 + CUTTERS + 3) / 4;  // warpgroups that load and cut
constexpr int kMultiplyK = 16;                   // depth of one instruction
constexpr int kMultipliesK = BLOCK_K / kMultiplyK;
// The columns of all weights, the gates first. Gated, two chains take one matrix each.
constexpr int kColumns = kWeights * BLOCK_N;
constexpr int kChainColumns = kColumns / CHAINS;
constexpr int kChainRegisters = kChainColumns / 2;  // accumulators per thread
constexpr int kParts = 3;                           // hi, mid, lo

typedef OperandTile<A_K_MAJOR, BLOCK_M> TileA;
typedef OperandTile<B_K_MAJOR, kColumns> TileB;
typedef OperandTile<B_K_MAJOR, BLOCK_N> WeightsTile;  // the part of it that one matrix fills
static_assert(!GATED || B_K_MAJOR || BLOCK_N % kSlabElements == 0, "a slab is of one matrix");

struct Stage {
  TileA a;
  TileB b;
};

// One part of B. Every row of the raw tile, 128 bytes of fp32, is a row of 64 bytes here, under
// the swizzle of that width, so that cutting is the same work whatever a row stands for.
struct CutTile {
  static constexpr int kSlabBytes = TileB::kSlabBytes / 2;
  u8 bytes[sizeof(TileB) / 2];

  // What the matrix instruction reads: swizzle of 64 bytes, 512 bytes between groups of 8 rows, and
  // where n is the contiguous direction the bytes from slab to slab.
  static __device__ __forceinline__ u64 descriptor(u32 address) {
    return u64(2) << 62 | u64(512 >> 4) << 32 | u64(B_K_MAJOR ? 0 : kSlabBytes >> 4) << 16 |
           (address & 0x3FFFF) >> 4;
  }
  // Byte offset of a chain's columns at instruction `step` along k.
  static __device__ __forceinline__ constexpr u32 offset(int chain, int step) {
    const int column = chain * kChainColumns;
    return B_K_MAJOR ? u32(column * 64 + step * kMultiplyK * 2)
                     : u32(column / kSlabElements * kSlabBytes + step * kMultiplyK * 64);
  }
};
static_assert(BLOCK_K * 4 == 128, "a row of k is one row of the swizzle");
static_assert(CHAINS == 1 || B_K_MAJOR || kChainColumns % kSlabElements == 0, "chains by slabs");

struct CutStage {
  CutTile parts[kParts];
};

struct SharedMemory {
  Stage stages[STAGES];
  CutStage cuts[CUT_STAGES];
  u64 full[STAGES];           // the bytes have arrived          (producer -> cutters, consumers)
  u64 empty[STAGES];          // B is cut, A in registers        (cutters, consumers -> producer)
  u64 cut_full[CUT_STAGES];   // B's parts are written           (cutters -> consumers)
  u64 cut_empty[CUT_STAGES];  // and multiplied                  (consumers -> cutters)
  u32 lost[CUT_STAGES];       // the tile of C for which they are not all of B
};

static_assert(sizeof(Stage) == SMEM_STAGE_BYTES, "stage");
static_assert(sizeof(CutStage) == SMEM_CUT_BYTES, "parts of B");
static_assert(sizeof(SharedMemory) == SMEM_BYTES, "shared memory");

constexpr u32 kNoTile = ~0u;

// How gemv reads A and B: straight into registers, in pieces as wide as rows are aligned, whole
// chunks of k only.

constexpr int kChunkK = 16 / kElementBytes;  // elements of a chunk
constexpr int kStepBytes = 16 * LANES_K;
constexpr int kStepK = kStepBytes / kElementBytes;
constexpr int kTileColumns = 32 / LANES_K;
constexpr int kTiles = BLOCK_N / WARPS_N / kTileColumns;
constexpr int kDepth = BLOCK_K / (WARPS_K * kStepK);

__device__ __forceinline__ GemvMap block_map() {
  return {B_K_MAJOR != 0, WARPS_N, WARPS_K, LANES_K, kTiles, kDepth};
}

static_assert(BLOCK_N == kTiles * kTileColumns * WARPS_N, "warps tile the columns");
static_assert(BLOCK_K == kDepth * WARPS_K * kStepK && kDepth > 0, "warps tile k");
static_assert(THREADS == 32 * WARPS_N * WARPS_K, "threads");

// One piece of 2, 4, 8 or 16 bytes into registers (2: the lower half of one); what is not `wanted`
// is not read and leaves them as they are. kOnce: weights stay out of L1, which is left to A, and
// as the other half of a line is what the next load wants, L2 fetches lines. Only weights are .nc:
// such loads may be moved to before the wait for the launch ahead, and were.
template <bool kOnce, int kBytes>
__device__ __forceinline__ void read_piece(u32* words, const char* from, bool wanted) {
#define AT_READ_1(how, type)                                                                    \
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n@p ld.global" how type " %0, [%1];\n}" \
               : "=r"(words[0])                                                                 \
               : "l"(from), "r"(int(wanted)))
#define AT_READ(how)                                                              \
  if constexpr (kBytes == 16) {                                                   \
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n@p ld.global" how      \
                 ".v4.b32 {%0, %1, %2, %3}, [%4];\n}"                             \
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) \
                 : "l"(from), "r"(int(wanted)));                                  \
  } else if constexpr (kBytes == 8) {                                             \
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n@p ld.global" how      \
                 ".v2.b32 {%0, %1}, [%2];\n}"                                     \
                 : "=r"(words[0]), "=r"(words[1])                                 \
                 : "l"(from), "r"(int(wanted)));                                  \
  } else if constexpr (kBytes == 4) {                                             \
    AT_READ_1(how, ".b32");                                                       \
  } else {                                                                        \
    AT_READ_1(how, ".u16");                                                       \
  }
  if constexpr (kOnce) {
    AT_READ(".nc.L1::no_allocate.L2::128B")
  } else {
    AT_READ("")
  }
#undef AT_READ
#undef AT_READ_1
}

// kBytes (4, 8 or 16), the first `pieces` pieces of kPiece bytes.
template <bool kOnce, int kBytes, int kPiece>
__device__ __forceinline__ void read_row(u32* words, const char* from, int pieces) {
#pragma unroll
  for (int i = 0; i < kBytes / kPiece; ++i) {
    if constexpr (kPiece >= 4) {
      read_piece<kOnce, kPiece>(words + i * kPiece / 4, from + i * kPiece, i < pieces);
    } else {
      u32 half;
      read_piece<kOnce, kPiece>(&half, from + i * kPiece, i < pieces);
      words[i / 2] = i % 2 == 0 ? half : words[i / 2] | half << 16;
    }
  }
}

// One thread's chunks of one pass: of kTiles columns, kDepth along k.
struct Weights {
  u32 words[kDepth][kTiles * 4];

  // 32-bit word `w` (0..3) of the chunk of tile `tile`'s column.
  __device__ __forceinline__ u32 word(int step, int tile, int w) const {
    const u32* at = words[step];
    if constexpr (B_K_MAJOR) {
      return at[tile * 4 + w];
    } else if constexpr (kElementBytes == 4) {
      return at[w * kTiles + tile];
    } else {  // the halves of two rows
      const u32* rows = at + w * kTiles + tile / 2;
      return __byte_perm(rows[0], rows[kTiles / 2], tile % 2 ? 0x7632 : 0x5410);
    }
  }
};

// Reads the weights of a tile of columns, pass after pass. Of columns that B does not have anything
// may be read: the sums of a column depend on nothing but that column, and nobody stores these.
struct WeightReader {
  static constexpr int kRowBytes =
      kTiles * kElementBytes;  // of a row of k, where those lie along n
  static constexpr int kPiece = B_K_MAJOR ? ALIGN_B : kRowBytes < ALIGN_B ? kRowBytes : ALIGN_B;
  static_assert(B_K_MAJOR || kRowBytes == 4 || kRowBytes == 8 || kRowBytes == 16, "row");

  // Where whole warps lie along k the columns' places are reckoned from the first: registers are
  // what is short there.
  static constexpr bool kReckoned = B_K_MAJOR && LANES_K == 32;

  const char* at[B_K_MAJOR && !kReckoned ? kTiles : 1];
  i64 row_bytes;
  int pieces;       // of a row that lie within B
  int last_column;  // of the warp's that B has, where they are reckoned

  __device__ __forceinline__ WeightReader(const GemmArgs& args, i64 first) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const i64 chunk = gemv_chunk(block_map(), gemv_first_step(block_map(), warp), lane);
    const int columns_left = int(args.n - first);
    row_bytes = args.ldb * kElementBytes;
    if constexpr (kReckoned) {
      const int column = min(gemv_column(block_map(), warp, 0, 0), columns_left - 1);
      last_column = columns_left - 1 - column;
      at[0] = static_cast<const char*>(args.b) + (first + column) * row_bytes + chunk * 16;
      pieces = 16 / kPiece;
    } else if constexpr (B_K_MAJOR) {
      const char* column0 = static_cast<const char*>(args.b) + first * row_bytes + chunk * 16;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int column = gemv_column(block_map(), warp, tile, lane / LANES_K);
        at[tile] = column0 + min(column, columns_left - 1) * row_bytes;
      }
      pieces = 16 / kPiece;
    } else {
      const int column = gemv_column(block_map(), warp, 0, lane / LANES_K);
      at[0] = static_cast<const char*>(args.b) + chunk * kChunkK * row_bytes +
              (first + column) * kElementBytes;
      pieces = (min(columns_left - column, kTiles) * kElementBytes + kPiece - 1) / kPiece;
    }
  }

  // `steps_left`: from the first of this pass on.
  __device__ __forceinline__ void read(Weights& out, int steps_left) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      const int wanted = step < steps_left ? pieces : 0;
      if constexpr (B_K_MAJOR) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          const char* from = kReckoned ? at[0] + min(tile, last_column) * row_bytes : at[tile];
          read_row<true, 16, kPiece>(out.words[step] + tile * 4, from + step * kStepBytes, wanted);
        }
      } else {
        const char* row = at[0] + i64(step * kStepK) * row_bytes;
#pragma unroll
        for (int i = 0; i < kChunkK; ++i) {
          read_row<true, kRowBytes, kPiece>(out.words[step] + i * kRowBytes / 4, row, wanted);
          row += row_bytes;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < int(sizeof(at) / sizeof(at[0])); ++i) {
      at[i] += B_K_MAJOR ? i64(BLOCK_K) * kElementBytes : BLOCK_K * row_bytes;
    }
  }
};

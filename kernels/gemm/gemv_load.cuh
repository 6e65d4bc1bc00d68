// How gemv reads A and B: straight into registers, in pieces as wide as rows are aligned, whole
// chunks of k only.

constexpr bool kTensor = LANES_K == 4 && DTYPE != DTYPE_FP32;  // tensor cores multiply, else FFMA

constexpr int kChunkK = 16 / kElementBytes;  // elements of a chunk
constexpr int kStepBytes = 16 * LANES_K;
constexpr int kStepK = kStepBytes / kElementBytes;
constexpr int kTileColumns = 32 / LANES_K;
constexpr int kTiles = BLOCK_N / WARPS_N / kTileColumns;
constexpr int kDepth = BLOCK_K / (WARPS_K * kStepK);

// Pieces: of a chunk, which A's rows are read in as well then, or of a row of k of kTiles columns.
constexpr int kPiecedBytes = B_K_MAJOR ? 16 : kTiles * kElementBytes;
constexpr int kAligned = B_K_MAJOR && ALIGN_A < ALIGN_B ? ALIGN_A : ALIGN_B;
constexpr int kPiece = kAligned < kPiecedBytes ? kAligned : kPiecedBytes;
constexpr int kPieces = kPiecedBytes / kPiece;
constexpr int kApart = (B_K_MAJOR ? LANES_K : kTileColumns) * kPiece;  // of a lane's pieces

__device__ __forceinline__ GemvMap block_map() {
  return {B_K_MAJOR != 0, WARPS_N, WARPS_K, LANES_K, kTiles, kDepth, kPieces};
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

// Elements of 16 bits that are read one by one are a word each where FFMA multiplies them; else
// two are put together.
template <int kBytes>
constexpr bool kSingle = kBytes == 2 && !kTensor;

// kCount pieces of kBytes, `apart` bytes from one to the next, the first `wanted` of them.
template <bool kOnce, int kBytes, int kCount>
__device__ __forceinline__ void read_pieces(u32* words, const char* from, int apart, int wanted) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const char* piece = from + i * apart;
    if constexpr (kBytes >= 4) {
      read_piece<kOnce, kBytes>(words + i * kBytes / 4, piece, i < wanted);
    } else if constexpr (kSingle<kBytes>) {
      read_piece<kOnce, kBytes>(words + i, piece, i < wanted);
    } else {
      u32 half;
      read_piece<kOnce, kBytes>(&half, piece, i < wanted);
      words[i / 2] = i % 2 == 0 ? half : words[i / 2] | half << 16;
    }
  }
}

// Words of a chunk that has been read in pieces of kBytes.
template <int kBytes>
constexpr int kChunkWords = kSingle<kBytes> ? kChunkK : 4;

// One element, in the low bits of a word where it has 16.
__device__ __forceinline__ float as_float(u32 bits) {
  if constexpr (kElementBytes == 4) return __uint_as_float(bits);
  if constexpr (DTYPE == DTYPE_BF16) return __uint_as_float(bits << 16);
  float value;
  asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(u16(bits)));
  return value;
}

__device__ __forceinline__ float load_input(const void* matrix, i64 index) {
  if constexpr (kElementBytes == 4) return static_cast<const float*>(matrix)[index];
  return as_float(static_cast<const u16*>(matrix)[index]);
}

// Element `index` of those that were read in pieces of kBytes.
template <int kBytes>
__device__ __forceinline__ float element_of(const u32* words, int index) {
  if constexpr (kElementBytes == 4 || kSingle<kBytes>) return as_float(words[index]);
  const u32 word = words[index / 2];
  if constexpr (DTYPE == DTYPE_BF16) {
    return __uint_as_float(index % 2 == 0 ? word << 16 : word & 0xffff0000);
  }
  return as_float(word >> index % 2 * 16);
}

// One thread's chunks of one pass: of kTiles columns, kDepth along k.
struct Weights {
  u32 words[kDepth][kTiles * kChunkWords<kPiece>];

  // 32-bit word `w` (0..3) of the chunk of tile `tile`'s column, for tensor cores.
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

  // Element `index` of that chunk, for FFMA.
  __device__ __forceinline__ float element(int step, int tile, int index) const {
    return element_of<kPiece>(words[step],
                              B_K_MAJOR ? tile * kChunkK + index : index * kTiles + tile);
  }
};

// Reads the weights of a tile of columns, pass after pass. Of columns that B does not have anything
// may be read: the sums of a column depend on nothing but that column, and nobody stores these.
struct WeightReader {
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
    const int step = gemv_first_step(block_map(), warp);
    const i64 along_k = i64(gemv_piece(block_map(), step, lane, 0)) * kPiece;
    const int columns_left = int(args.n - first);
    row_bytes = args.ldb * kElementBytes;
    if constexpr (kReckoned) {
      const int column = min(gemv_column(block_map(), warp, 0, 0), columns_left - 1);
      last_column = columns_left - 1 - column;
      at[0] = static_cast<const char*>(args.b) + (first + column) * row_bytes + along_k;
      pieces = kPieces;
    } else if constexpr (B_K_MAJOR) {
      const char* column0 = static_cast<const char*>(args.b) + first * row_bytes + along_k;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const int column = gemv_column(block_map(), warp, tile, lane / LANES_K);
        at[tile] = column0 + min(column, columns_left - 1) * row_bytes;
      }
      pieces = kPieces;
    } else {
      const int column = gemv_column(block_map(), warp, 0, lane / LANES_K);
      at[0] = static_cast<const char*>(args.b) +
              i64(gemv_chunk(block_map(), step, lane)) * kChunkK * row_bytes +
              (first + column) * kElementBytes;
      const int left = min(columns_left - column, kTiles * kTileColumns);
      pieces = (left * kElementBytes + kApart - 1) / kApart;
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
          read_pieces<true, kPiece, kPieces>(out.words[step] + tile * kChunkWords<kPiece>,
                                             from + step * kStepBytes, kApart, wanted);
        }
      } else {
        const char* row = at[0] + i64(step * kStepK) * row_bytes;
#pragma unroll
        for (int i = 0; i < kChunkK; ++i) {
          read_pieces<true, kPiece, kPieces>(
              out.words[step] + i * kTiles * kChunkWords<kPiece> / kChunkK, row, kApart, wanted);
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

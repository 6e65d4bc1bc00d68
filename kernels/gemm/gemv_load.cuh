// How gemv reads A and B: straight into registers, in pieces as wide as rows are aligned, whole
// chunks of k only.

constexpr int kChunkK = 16 / kElementBytes;  // elements of a chunk
constexpr int kStepK = kGemvStepChunks * kChunkK;
constexpr int kTiles = BLOCK_N / WARPS_N / 8;
constexpr int kDepth = BLOCK_K / (WARPS_K * kStepK);

__device__ __forceinline__ GemvMap block_map() {
  return {B_K_MAJOR != 0, WARPS_N, WARPS_K, kTiles, kDepth};
}

static_assert(BLOCK_N == kTiles * 8 * WARPS_N, "warps tile the columns");
static_assert(BLOCK_K == kDepth * WARPS_K * kStepK && kDepth > 0, "warps tile k");
static_assert(THREADS == 32 * WARPS_N * WARPS_K, "threads");

// One piece of 2, 4, 8 or 16 bytes into words that are zero so far, where `wanted`. (2: the lower
// half of a word.) kOnce: weights stay out of L1, which is left to A, and as the other half of a
// line is what the next load wants, L2 fetches lines.
template <bool kOnce, int kBytes>
__device__ __forceinline__ void read_piece(u32* words, const char* from, bool wanted) {
#define AT_READ_1(how, type)                                                                       \
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n@p ld.global.nc" how type " %0, [%1];\n}" \
               : "+r"(words[0])                                                                    \
               : "l"(from), "r"(int(wanted)))
#define AT_READ(how)                                                                              \
  if constexpr (kBytes == 16) {                                                                   \
    asm volatile(                                                                                 \
        "{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n@p ld.global.nc" how                            \
        ".v4.b32 {%0, %1, %2, %3}, [%4];\n}"                                                      \
        : "+r"(words[0]), "+r"(words[1]), "+r"(words[2]), "+r"(words[3])                          \
        : "l"(from), "r"(int(wanted)));                                                           \
  } else if constexpr (kBytes == 8) {                                                             \
    asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n@p ld.global.nc" how                   \
                 ".v2.b32 {%0, %1}, [%2];\n}"                                                     \
                 : "+r"(words[0]), "+r"(words[1])                                                 \
                 : "l"(from), "r"(int(wanted)));                                                  \
  } else if constexpr (kBytes == 4) {                                                             \
    AT_READ_1(how, ".b32");                                                                       \
  } else {                                                                                        \
    AT_READ_1(how, ".u16");                                                                       \
  }
  if constexpr (kOnce) {
    AT_READ(".L1::no_allocate.L2::128B")
  } else {
    AT_READ("")
  }
#undef AT_READ
#undef AT_READ_1
}

// kBytes (4, 8 or 16) in pieces of kPiece bytes; zero from the piece `pieces` on.
template <bool kOnce, int kBytes, int kPiece>
__device__ __forceinline__ void read_row(u32* words, const char* from, int pieces) {
#pragma unroll
  for (int i = 0; i < kBytes / 4; ++i) words[i] = 0;
#pragma unroll
  for (int i = 0; i < kBytes / kPiece; ++i) {
    if constexpr (kPiece >= 4) {
      read_piece<kOnce, kPiece>(words + i * kPiece / 4, from + i * kPiece, i < pieces);
    } else {
      u32 half[1] = {0};
      read_piece<kOnce, kPiece>(half, from + i * kPiece, i < pieces);
      words[i / 2] |= half[0] << (16 * (i % 2));
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

// Reads the weights of a tile of columns, pass after pass.
struct WeightReader {
  static constexpr int kRowBytes = kTiles * kElementBytes;  // of a row of k, where those lie along n
  static constexpr int kPiece = B_K_MAJOR ? ALIGN_B : kRowBytes < ALIGN_B ? kRowBytes : ALIGN_B;
  static_assert(B_K_MAJOR || kRowBytes == 4 || kRowBytes == 8 || kRowBytes == 16, "row");

  const char* at[B_K_MAJOR ? kTiles : 1];
  i64 row_bytes;
  int chunks_left;  // from this lane's first of the pass on
  int pieces;       // of a row that lie within B

  __device__ __forceinline__ WeightReader(const GemmArgs& args, i64 first, int chunks) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int chunk = gemv_chunk(block_map(), warp, lane, 0);
    const char* b = static_cast<const char*>(args.b);
    chunks_left = chunks - chunk;
    row_bytes = args.ldb * kElementBytes;
    if constexpr (B_K_MAJOR) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const i64 column = first + gemv_column(block_map(), warp, tile, lane / 4);
        at[tile] = b + min(column, i64(args.n - 1)) * row_bytes + i64(chunk) * 16;
      }
      pieces = 16 / kPiece;
    } else {
      const i64 column = first + gemv_column(block_map(), warp, 0, lane / 4);
      at[0] = b + i64(chunk) * kChunkK * row_bytes + column * kElementBytes;
      const i64 bytes = (args.n - column) * kElementBytes;
      pieces = int(min(bytes + kPiece - 1, i64(kRowBytes)) / kPiece);
    }
  }

  __device__ __forceinline__ void read(Weights& out) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      const int wanted = step * kGemvStepChunks < chunks_left ? pieces : 0;
      if constexpr (B_K_MAJOR) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          read_row<true, 16, kPiece>(out.words[step] + tile * 4, at[tile] + step * kStepK * kElementBytes,
                                     wanted);
        }
      } else {
        const char* row = at[0] + i64(step) * kStepK * row_bytes;
#pragma unroll
        for (int i = 0; i < kChunkK; ++i) {
          read_row<true, kRowBytes, kPiece>(out.words[step] + i * kRowBytes / 4, row, wanted);
          row += row_bytes;
        }
      }
    }
    chunks_left -= gemv_pass_chunks(block_map());
#pragma unroll
    for (int i = 0; i < int(sizeof(at) / sizeof(at[0])); ++i) {
      at[i] += B_K_MAJOR ? i64(BLOCK_K) * kElementBytes : BLOCK_K * row_bytes;
    }
  }
};

// How gemv multiplies what it has read: tensor cores where a quad's lanes lie along k, with A's
// rows as the 16-row operand, but for fp32; else FFMA. A row that A does not have is read as its
// last one: the sums of a row depend on nothing but that row, and nobody stores these.

constexpr bool kTensor = LANES_K == 4 && DTYPE != DTYPE_FP32;
constexpr int kRowTiles = BLOCK_M > 8 ? 2 : 1;  // of 8 rows

static_assert(!kTensor || BLOCK_M == 8 || BLOCK_M == 16, "rows of a matrix instruction");

// A's chunks beside the weights of the same pass, read as early as those.
struct TensorRows {
  u32 words[kDepth][kRowTiles][4];
};

// FFMA would need every row's chunk: they are read when they are multiplied.
struct NoRows {};

// This lane's place in A, pass after pass.
struct RowReader {
  const char* first;  // this quad's row; row 0 for FFMA
  i64 pitch;          // to the row 8 further; the next one for FFMA
  int rows;

  __device__ __forceinline__ explicit RowReader(const GemmArgs& args) {
    const int lane = threadIdx.x % 32;
    const i64 chunk = gemv_chunk(block_map(), gemv_first_step(block_map(), threadIdx.x / 32), lane);
    first = static_cast<const char*>(args.a) + chunk * 16;
    pitch = args.lda * kElementBytes;
    rows = args.m;
    if constexpr (kTensor) {
      const int row = min(lane / 4, rows - 1);
      first += row * pitch;
      pitch *= min(lane / 4 + 8, rows - 1) - row;
    }
  }

  __device__ __forceinline__ void advance() { first += BLOCK_K * kElementBytes; }

  __device__ __forceinline__ void read(TensorRows& out, int steps_left) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
#pragma unroll
      for (int half = 0; half < kRowTiles; ++half) {
        read_row<false, 16, ALIGN_A>(out.words[step][half],
                                     first + half * pitch + step * kStepBytes,
                                     step < steps_left ? 16 / ALIGN_A : 0);
      }
    }
    advance();
  }
  __device__ __forceinline__ void read(NoRows&, int) {}
};

// Sums of the warp's columns, as the matrix instructions spread them over the lanes.
struct TensorSums {
  typedef TensorRows Rows;
  float d[kTiles][4];

  __device__ __forceinline__ void add(const Weights& weights, const Rows& rows, RowReader&,
                                      int steps_left) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      if (step < steps_left) add_step(weights, rows, step);
    }
  }

  __device__ __forceinline__ void add_step(const Weights& weights, const Rows& rows, int step) {
#pragma unroll
    for (int w = 0; w < 4; w += 2) {
      u32 a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = i % 2 < kRowTiles ? round_tf32(rows.words[step][i % kRowTiles][w + i / 2]) : 0;
      }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        multiply(d[tile], a, round_tf32(weights.word(step, tile, w)),
                 round_tf32(weights.word(step, tile, w + 1)));
      }
    }
  }

  // Calls put(row, tile, index of the column in it, sum) for all that this lane holds.
  template <typename Put>
  __device__ __forceinline__ void give(const Put& put) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 2 * kRowTiles; ++i) {
        put(lane / 4 + i / 2 * 8, tile, lane % 4 * 2 + i % 2, d[tile][i]);
      }
    }
  }
};

// An element of a word as fp32.
constexpr int kWordElements = 4 / kElementBytes;

__device__ __forceinline__ float element_of(u32 word, int index) {
  if constexpr (kElementBytes == 4) return __uint_as_float(word);
  if constexpr (DTYPE == DTYPE_BF16) {
    return __uint_as_float(index == 0 ? word << 16 : word & 0xffff0000);
  }
  float value;
  asm("cvt.f32.f16 %0, %1;\n" : "=f"(value) : "h"(u16(word >> 16 * index)));
  return value;
}

// Sums over a lane's own chunks, of all rows and of its group's column in each tile.
struct FfmaSums {
  typedef NoRows Rows;
  float d[BLOCK_M][kTiles];

  __device__ __forceinline__ void add(const Weights& weights, const Rows&, RowReader& reader,
                                      int steps_left) {
#pragma unroll
    for (int step = 0; step < kDepth; ++step) {
      if (step < steps_left) add_step(weights, reader, step);
    }
    reader.advance();
  }

  __device__ __forceinline__ void add_step(const Weights& weights, const RowReader& reader,
                                           int step) {
    const char* from = reader.first + step * kStepBytes;
#pragma unroll
    for (int row = 0; row < BLOCK_M; ++row) {
      u32 a[4];
      read_row<false, 16, ALIGN_A>(a, from, 16 / ALIGN_A);
      if (row + 1 < reader.rows) from += reader.pitch;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int i = 0; i < kChunkK; ++i) {
          const int w = i / kWordElements;
          const int index = i % kWordElements;
          d[row][tile] = fmaf(element_of(a[w], index),
                              element_of(weights.word(step, tile, w), index), d[row][tile]);
        }
      }
    }
  }

  template <typename Put>
  __device__ __forceinline__ void give(const Put& put) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < BLOCK_M; ++row) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float sum = d[row][tile];
#pragma unroll
        for (int apart = 1; apart < LANES_K; apart *= 2) sum += __shfl_xor_sync(~0u, sum, apart);
        if (lane % LANES_K == row % LANES_K) put(row, tile, lane / LANES_K, sum);
      }
    }
  }
};

template <bool kMatrix>
struct SumsOf {
  typedef TensorSums Type;
};
template <>
struct SumsOf<false> {
  typedef FfmaSums Type;
};
typedef SumsOf<kTensor>::Type Sums;

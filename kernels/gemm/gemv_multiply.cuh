// How gemv multiplies what it has read: tensor cores where a quad's lanes lie along k, with A's
// rows as the 16-row operand, but for fp32; else FFMA. A row that A does not have is read as its
// last one: the sums of a row depend on nothing but that row, and nobody stores these.

constexpr int kRowTiles = BLOCK_M > 8 ? 2 : 1;  // of 8 rows

static_assert(!kTensor || BLOCK_M == 8 || BLOCK_M == 16, "rows of a matrix instruction");

// A's chunks beside the weights of the same pass, read as early as those.
struct TensorRows {
  u32 words[kDepth][kRowTiles][4];
};

// Pieces of a chunk of A: those of B's columns, or all in one place.
constexpr int kRowPiece = B_K_MAJOR ? kPiece : ALIGN_A;
constexpr int kRowPieces = 16 / kRowPiece;
constexpr int kRowApart = B_K_MAJOR ? kApart : kRowPiece;

// FFMA would need every row's chunk: they are read when they are multiplied.
struct NoRows {};

// This lane's place in A, pass after pass.
struct RowReader {
  const char* first;  // this quad's row; row 0 for FFMA
  i64 pitch;          // to the row 8 further; the next one for FFMA
  int rows;

  __device__ __forceinline__ explicit RowReader(const GemmArgs& args) {
    const int lane = threadIdx.x % 32;
    const int step = gemv_first_step(block_map(), threadIdx.x / 32);
    first = static_cast<const char*>(args.a) +
            (B_K_MAJOR ? i64(gemv_piece(block_map(), step, lane, 0)) * kPiece
                       : i64(gemv_chunk(block_map(), step, lane)) * 16);
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
        read_pieces<false, kRowPiece, kRowPieces>(out.words[step][half],
                                                  first + half * pitch + step * kStepBytes,
                                                  kRowApart, step < steps_left ? kRowPieces : 0);
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

  __device__ __forceinline__ int add_rest(const GemmArgs&, i64, int k_done) { return k_done; }

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
      u32 a[kChunkWords<kRowPiece>];
      read_pieces<false, kRowPiece, kRowPieces>(a, from, kRowApart, kRowPieces);
      if (row + 1 < reader.rows) from += reader.pitch;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int i = 0; i < kChunkK; ++i) {
          d[row][tile] =
              fmaf(element_of<kRowPiece>(a, i), weights.element(step, tile, i), d[row][tile]);
        }
      }
    }
  }

  // What lies behind `k_done`, where that can be most of a step: an element of each column for each
  // lane and warp along k in turn. Returns how much of k is done then.
  __device__ __forceinline__ int add_rest(const GemmArgs& args, i64 first, int k_done) {
    if constexpr (!B_K_MAJOR || kPieces == 1) return k_done;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    for (u32 k = k_done + warp / WARPS_N * LANES_K + lane % LANES_K; k < u32(args.k);
         k += WARPS_K * LANES_K) {
      float b[kTiles];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const i64 column = first + gemv_column(block_map(), warp, tile, lane / LANES_K);
        b[tile] = column < args.n ? load_input(args.b, column * args.ldb + k) : 0.0f;
      }
#pragma unroll
      for (int row = 0; row < BLOCK_M; ++row) {
        const float a = load_input(args.a, min(row, args.m - 1) * args.lda + k);
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) d[row][tile] = fmaf(a, b[tile], d[row][tile]);
      }
    }
    return args.k;
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

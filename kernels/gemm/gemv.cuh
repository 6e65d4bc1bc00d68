// C of few rows: the weights (B) are read as fast as DRAM gives them, once for every BLOCK_M rows.
//
// A block owns block_n columns of so many rows and all of k. Its warps lie along n and along k;
// each streams its columns' chunks from memory straight into registers, `stages` passes ahead of
// the multiplication, so that nothing but arithmetic stands between a load and its use: no shared
// memory, no barrier. At the end the warps along k meet in shared memory, where their sums are
// added in a fixed order.
//
// What matters is how early the first loads leave, and how little is left to do behind the last
// one: the code is short, as its instructions come from cold memory too.
//
// Further constants: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_N, WARPS_K, LANES_K, THREADS,
// MIN_BLOCKS, SEVERAL_TILES_M (C may have more than BLOCK_M rows), and the layout SMEM_ROW_BYTES,
// SMEM_SLICE_BYTES, SMEM_BYTES.

// Sums of the warps at one place along k. Eight words more, where rows would share banks.
struct Slice {
  float sums[BLOCK_M][BLOCK_N + (BLOCK_N % 16 == 0 ? 8 : 0)];
};

static_assert(sizeof(Slice::sums[0]) == SMEM_ROW_BYTES, "row of sums");
static_assert(sizeof(Slice) == SMEM_SLICE_BYTES, "slice");
static_assert(WARPS_K * sizeof(Slice) == SMEM_BYTES, "shared memory");

// Chunks along k that are read as such: whole steps of them where the lanes of a quad multiply
// together or a chunk is in several places, and of rows of B, of which a piece may reach past the
// last column, into the next row, behind the last row into nothing.
constexpr bool kWholeSteps = kTensor || !B_K_MAJOR || kPieces > 1;

__device__ __forceinline__ int whole_chunks(const GemmArgs& args) {
  const bool overhangs = !B_K_MAJOR && args.n % (kPiece / kElementBytes) != 0;
  const int k = overhangs ? args.k - 1 : args.k;
  return kWholeSteps ? k / kStepK * LANES_K : k / kChunkK;
}

// Steps in which this lane has a chunk.
__device__ __forceinline__ int steps_of(int chunks) {
  if constexpr (kWholeSteps) return chunks / LANES_K;
  return (chunks + LANES_K - 1 - int(threadIdx.x % LANES_K)) / LANES_K;
}

// The warps' sums, what lies behind `k_done`, and the old C: to C.
__device__ __forceinline__ void store_columns(const GemmArgs& args, const Slice* slices, i64 first,
                                              int k_done) {
  for (int i = threadIdx.x; i < min(args.m, BLOCK_M) * BLOCK_N; i += THREADS) {
    const int row = i / BLOCK_N;
    const i64 column = first + i % BLOCK_N;
    if (column >= args.n) continue;
    float sum = 0.0f;
#pragma unroll
    for (int slice = 0; slice < WARPS_K; ++slice) sum += slices[slice].sums[row][i % BLOCK_N];
#pragma unroll 4
    for (int k = k_done; k < args.k; ++k) {
      const i64 at = B_K_MAJOR ? column * args.ldb + k : k * args.ldb + column;
      sum = fmaf(load_input(args.a, row * args.lda + k), load_input(args.b, at), sum);
    }
    sum *= args.alpha;
    const i64 target = row * args.ldc + column;
    if (HAS_BETA) sum += args.beta * load_output(args.c, target);
    store_output(args.c, target, sum);
  }
}

__device__ __forceinline__ void compute_columns(const GemmArgs& args, i64 first, Slice* slices) {
  const int chunks = whole_chunks(args);
  const int warp = threadIdx.x / 32;
  const int kPass = gemv_pass_steps(block_map());
  // Of this warp, those of the others between.
  int left = steps_of(chunks) - gemv_first_step(block_map(), warp);
  WeightReader read_weights(args, first);
  Weights weights[STAGES];
#pragma unroll
  for (int s = 0; s < STAGES; ++s) read_weights.read(weights[s], left - s * kPass);
  wait_for_launch_ahead();  // which writes A, but no weights
  RowReader read_rows(args);
  Sums::Rows rows[STAGES];
#pragma unroll
  for (int s = 0; s < STAGES; ++s) read_rows.read(rows[s], left - s * kPass);

  Sums sums = {};
#pragma unroll 1  // a second copy of the loop would want a second set of registers
  while (left > 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      // Also where instructions part: no load is put off behind the next stage's multiplication.
      if (left <= 0) break;
      sums.add(weights[s], rows[s], read_rows, left);
      read_weights.read(weights[s], left - STAGES * kPass);
      read_rows.read(rows[s], left - STAGES * kPass);
      left -= kPass;
    }
  }

  const int k_done = sums.add_rest(args, first, chunks * kChunkK);
  sums.give([&](int row, int tile, int index, float sum) {
    if (row < args.m)
      slices[warp / WARPS_N].sums[row][gemv_column(block_map(), warp, tile, index)] = sum;
  });
  __syncthreads();
  store_columns(args, slices, first, k_done);
}

// A and C from a row on.
__device__ __forceinline__ GemmArgs rows_from(GemmArgs args, int row) {
  args.a = static_cast<const char*>(args.a) + row * args.lda * kElementBytes;
  args.c = static_cast<char*>(args.c) + row * args.ldc * kOutBytes;
  args.m -= row;
  return args;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_gemv(const __grid_constant__ GemmArgs args) {
  extern __shared__ __align__(16) u8 smem[];
  Slice* slices = reinterpret_cast<Slice*>(smem);
  const u32 tiles = SEVERAL_TILES_M ? args.tiles_m * args.tiles_n : args.tiles_n;
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    if constexpr (SEVERAL_TILES_M) {
      const TileIndex tile = tile_of(id, args);
      compute_columns(rows_from(args, tile.m * BLOCK_M), i64(tile.n) * BLOCK_N, slices);
    } else {
      compute_columns(args, i64(id) * BLOCK_N, slices);
    }
    __syncthreads();  // before the next columns' sums come
  }
}

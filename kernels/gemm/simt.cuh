// fp32 GEMM on the FFMA units: exact fp32 products and sums, any architecture.
//
// A block computes block_m x block_n of C with one thread_m x thread_n register tile per thread, or
// two where it is gated.
// Both operands lie in shared memory as [k][row], so that a thread reads its rows as 16-byte
// vectors; an operand that is contiguous along k is transposed on the way in by 4-byte asynchronous
// copies, swizzled as in simt_map.h.
//
// Further constants: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, THREAD_M, THREAD_N, THREADS, MIN_BLOCKS,
// and the layout SMEM_A_BYTES, SMEM_B_OFFSET, SMEM_STAGE_BYTES, SMEM_BYTES.

constexpr int kThreadsM = BLOCK_M / THREAD_M;
constexpr int kThreadsN = BLOCK_N / THREAD_N;
constexpr int kVectorM = THREAD_M < 4 ? THREAD_M : 4;
constexpr int kVectorN = THREAD_N < 4 ? THREAD_N : 4;
constexpr int kLanesN = kThreadsN < 8 ? kThreadsN : 8;  // a warp covers kLanesM x kLanesN threads
constexpr int kLanesM = 32 / kLanesN;

static_assert(THREADS == kThreadsM * kThreadsN && THREADS % 32 == 0, "threads");
static_assert(kThreadsM % kLanesM == 0 && kThreadsN % kLanesN == 0, "warps tile the block");

constexpr int kTileA = BLOCK_K * BLOCK_M * 4;  // bytes
constexpr int kTileB = BLOCK_K * BLOCK_N * 4;
constexpr int kSpanA = simt_span(A_K_MAJOR, BLOCK_M * 4, kTileA, kTileB);
constexpr int kSpanB = simt_span(B_K_MAJOR, BLOCK_N * 4, kTileA, kTileB);

static_assert(kTileA == SMEM_A_BYTES && SMEM_A_BYTES == SMEM_B_OFFSET, "A tile");
static_assert(kTileA + kWeights * kTileB == SMEM_STAGE_BYTES, "stage");
static_assert(STAGES * SMEM_STAGE_BYTES == SMEM_BYTES, "shared memory");

template <typename T>
__device__ __forceinline__ T* at_shared(u32 address) {
  return static_cast<T*>(__cvta_shared_to_generic(address));
}

// Copies kBytes to shared memory, zero where `valid` is 0.
template <int kBytes>
__device__ __forceinline__ void copy_words(u32 shared, const float* global, int valid) {
  if constexpr (HAS_CP_ASYNC) {
    cp_async<kBytes>(shared, global, valid);
  } else {
#pragma unroll
    for (int i = 0; i < kBytes / 4; ++i) {
      at_shared<float>(shared)[i] = i * 4 < valid ? global[i] : 0.0f;
    }
  }
}

// Copies one operand's tiles, [BLOCK_K][kExtent] in shared memory, k tile after k tile. A thread's
// copies are a fixed step apart in both memories, but for the swizzle, so that it keeps one
// pointer. Its rows are whole eights apart, all with the same swizzle.
template <bool kKMajor, int kExtent, int kAlign, int kSpan>
struct Loader {
  static constexpr int kWords = (!kKMajor && kAlign == 16) ? 4 : 1;     // per copy
  static constexpr int kAcross = kKMajor ? BLOCK_K : kExtent / kWords;  // copies side by side
  static constexpr int kLines = kKMajor ? kExtent : BLOCK_K;
  static constexpr int kLineStep = THREADS / kAcross > 0 ? THREADS / kAcross : 1;
  static constexpr int kAcrossStep = THREADS < kAcross ? THREADS : kAcross;
  static constexpr int kUnit = kKMajor ? kLineStep * 4 : 4;
  static_assert(THREADS % kAcross == 0 || kAcross % THREADS == 0, "copies tile the lines");

  const float* pointer;
  i64 line_step;
  i64 k_step;
  int line;
  int across;
  int extent_left;

  __device__ __forceinline__ Loader(const void* base, i64 leading, i64 first, int extent) {
    line = threadIdx.x / kAcross;
    across = threadIdx.x % kAcross * (kKMajor ? 1 : kWords);
    extent_left = int(extent - first);
    pointer = static_cast<const float*>(base) + (kKMajor ? first * leading : first) +
              line * leading + across;
    line_step = kLineStep * leading;
    k_step = kKMajor ? BLOCK_K : BLOCK_K * leading;
  }

  // Fills the tile at that address and moves on by one k tile. `k_left`: columns of k from there.
  __device__ __forceinline__ void load(u32 tile, int k_left) {
    const int lines_left = (kKMajor ? extent_left : k_left) - line;
    const int across_left = (kKMajor ? k_left : extent_left) - across;
    const u32 target = tile + (kKMajor ? across * kExtent + line : line * kExtent + across) * 4;
    const int swizzle = simt_swizzle(kSpan, across);
    const float* source = pointer;
#pragma unroll
    for (int i = 0; i < (kLines + kLineStep - 1) / kLineStep; ++i) {
#pragma unroll
      for (int j = 0; j < kAcross / kAcrossStep; ++j) {
        if (kLines % kLineStep == 0 || line + i * kLineStep < kLines) {
          const int left = across_left - j * kAcrossStep * kWords;
          const bool inside = i * kLineStep < lines_left && left > 0;
          const int step = j * kAcrossStep * kWords;
          const int shared_step =
              (kKMajor ? i * kLineStep + step * kExtent : i * kLineStep * kExtent + step) * 4;
          const u32 place = simt_place(kSpan, kUnit, target, shared_step, swizzle) +
                            simt_whole_spans(kSpan, shared_step);
          copy_words<kWords * 4>(place, source + step, inside ? min(left, kWords) * 4 : 0);
        }
      }
      source += line_step;
    }
    pointer += k_step;
  }
};

// Reads a thread's elements of row k, as many at once as lie together; `first`: the address of its
// first one in row 0.
template <int kCount, int kVector, int kThreads, int kSpan>
__device__ __forceinline__ void read_row(float (&out)[kCount], u32 first, int k) {
  constexpr int kUnit = kThreads * kVector * 4;
  constexpr int kAtOnce = kVector % 2 == 0 ? kVector : 1;
  const int swizzle = simt_swizzle(kSpan, k);
#pragma unroll
  for (int i = 0; i < kCount; i += kAtOnce) {
    const int step = ((k * kCount + i / kVector * kVector) * kThreads + i % kVector) * 4;
    const u32 place = simt_place(kSpan, kUnit, first, step, swizzle);
    const float* source = at_shared<const float>(place) + simt_whole_spans(kSpan, step) / 4;
    source = static_cast<const float*>(__builtin_assume_aligned(source, kAtOnce * 4));
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) out[i + j] = source[j];
  }
}

// Position in the block's tile of a thread's i-th row: vectors of neighbouring threads are
// adjacent.
template <int kVector, int kThreads>
__device__ __forceinline__ int position(int thread, int i) {
  return (i / kVector) * kThreads * kVector + thread * kVector + i % kVector;
}

__device__ __forceinline__ void store_tile(const GemmArgs& args,
                                           const float (&acc)[kWeights][THREAD_M][THREAD_N],
                                           i64 row0, i64 col0, int ty, int tx) {
  float* c = static_cast<float*>(args.c);
#pragma unroll
  for (int i = 0; i < THREAD_M; ++i) {
    const i64 row = row0 + position<kVectorM, kThreadsM>(ty, i);
    if (row >= args.m) continue;
#pragma unroll
    for (int j = 0; j < THREAD_N; j += kVectorN) {
      const i64 col = col0 + position<kVectorN, kThreadsN>(tx, j);
      float* target = c + row * args.ldc + col;
      float v[kVectorN];
#pragma unroll
      for (int e = 0; e < kVectorN; ++e) {
        v[e] = finished(args, acc[0][i][j + e], acc[kWeights - 1][i][j + e]);
        if (HAS_BETA && col + e < args.n) v[e] += args.beta * target[e];
      }
      if constexpr (kVectorN == 4 && ALIGN_C == 16) {
        if (col + 4 <= args.n) {
          *reinterpret_cast<float4*>(target) = float4{v[0], v[1], v[2], v[3]};
          continue;
        }
      }
#pragma unroll
      for (int e = 0; e < kVectorN; ++e) {
        if (col + e < args.n) target[e] = v[e];
      }
    }
  }
}

__device__ __forceinline__ void compute_tile(const GemmArgs& args, TileIndex tile, u32 ring) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  constexpr int kWarpsN = kThreadsN / kLanesN;
  const int ty = (warp / kWarpsN) * kLanesM + lane / kLanesN;
  const int tx = (warp % kWarpsN) * kLanesN + lane % kLanesN;
  const i64 row0 = i64(tile.m) * BLOCK_M;
  const i64 col0 = i64(tile.n) * BLOCK_N;
  const int k_tiles = args.k / BLOCK_K + (args.k % BLOCK_K != 0);

  using LoaderB = Loader<B_K_MAJOR, BLOCK_N, ALIGN_B, kSpanB>;
  Loader<A_K_MAJOR, BLOCK_M, ALIGN_A, kSpanA> load_a(args.a, args.lda, row0, args.m);
  LoaderB load_b(args.b, args.ldb, col0, args.n);
  LoaderB load_up(args.up, args.ldb, col0, args.n);
  int k_left = args.k;
  const u32 last_stage = ring + (STAGES - 1) * SMEM_STAGE_BYTES;
  const auto next_stage = [&](u32 stage) {
    return stage == last_stage ? ring : stage + SMEM_STAGE_BYTES;
  };
  u32 write_stage = ring;

  auto load_next = [&]() {
    if (k_left > 0) {
      load_a.load(write_stage, k_left);
      load_b.load(write_stage + kTileA, k_left);
      if constexpr (GATED) load_up.load(write_stage + kTileA + kTileB, k_left);
      k_left -= BLOCK_K;
      write_stage = next_stage(write_stage);
    }
    cp_async_commit();
  };

  float acc[kWeights][THREAD_M][THREAD_N];
#pragma unroll
  for (int w = 0; w < kWeights; ++w) {
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
      for (int j = 0; j < THREAD_N; ++j) acc[w][i][j] = 0.0f;
    }
  }

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) load_next();
  cp_async_wait<STAGES - 2>();
  __syncthreads();

  float fa[2][THREAD_M];
  float fb[2][kWeights][THREAD_N];
  u32 read_stage = ring;
  auto read = [&](int buffer, int k) {
    const u32 first_a = read_stage + ty * kVectorM * 4;
    const u32 first_b = read_stage + kTileA + tx * kVectorN * 4;
    read_row<THREAD_M, kVectorM, kThreadsM, kSpanA>(fa[buffer], first_a, k);
    read_row<THREAD_N, kVectorN, kThreadsN, kSpanB>(fb[buffer][0], first_b, k);
    if constexpr (GATED) {
      read_row<THREAD_N, kVectorN, kThreadsN, kSpanB>(fb[buffer][kWeights - 1], first_b + kTileB,
                                                      k);
    }
  };
  read(0, 0);

  for (int tile_k = 0; tile_k < k_tiles; ++tile_k) {
#pragma unroll
    for (int k = 0; k < BLOCK_K; ++k) {
      if (k == BLOCK_K - 1) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        read_stage = next_stage(read_stage);
      }
      read((k + 1) % 2, (k + 1) % BLOCK_K);
      if (k == 0) load_next();
#pragma unroll
      for (int w = 0; w < kWeights; ++w) {
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
          for (int j = 0; j < THREAD_N; ++j) acc[w][i][j] += fa[k % 2][i] * fb[k % 2][w][j];
        }
      }
    }
  }
  cp_async_wait<0>();
  store_tile(args, acc, row0, col0, ty, tx);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_simt(const __grid_constant__ GemmArgs args) {
  extern __shared__ __align__(128) u8 smem[];
  const u32 tiles = u32(args.tiles_m) * u32(args.tiles_n);
  wait_for_launch_ahead();
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    compute_tile(args, tile_of(id, args), shared_address(smem));
    __syncthreads();
  }
}

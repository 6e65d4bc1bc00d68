// GEMM for rows that begin anywhere: mma.sync, fed by the bulk copy engine, sm_90 and up.
//
// Operands are contiguous along k. A row of a tile comes as one bulk copy of all the 16-byte pieces
// that it touches, and lies in shared memory as far behind a line of 128 bytes as it does in global
// memory (copies that must shift their lines are half as fast). So a row begins where it likes, and
// fragments are read there, word by word. A block's k tiles travel through a ring of `stages`, which
// a block with few of them fills but once.
//
// Where k is split, the parts of a tile are the blocks of a cluster: each gives the others what it
// has of their rows, and stores the sum of its own.
//
// In the order of the text: mma_instruction.cuh, hopper.cuh, split.cuh, mma_bulk_tile.cuh,
// mma_bulk_load.cuh, mma_bulk_store.cuh and this file.

// The words of a lane for one step along k, as the instruction has them.
struct Fragments {
  u32 a[kTilesM][4];
  u32 b[kTilesN][2];
};

// Where a lane's fragments of a stage begin: of each group of 8 rows or columns its own row's word.
class FragmentReader {
 public:
  __device__ __forceinline__ FragmentReader(const GemmArgs& args, const TilePlace& tile) {
    const int warp = int(threadIdx.x / 32);
#pragma unroll
    for (int i = 0; i < 2 * kTilesM; ++i) {
      const int row = warp / WARPS_N * kWarpM + row_of_group<kClassesA>(i, lane() / 4);
      a_[i] = row * kSlotBytes + phase(args.a, tile.row + row, args.lda) + lane() % 4 * 4;
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      const int col = warp % WARPS_N * kWarpN + row_of_group<kClassesB>(j, lane() / 4);
      b_[j] = (BLOCK_M + col) * kSlotBytes + phase(args.b, tile.col + col, args.ldb) +
              lane() % 4 * 4;
    }
  }

  // Of a step that begins `offset` bytes into the rows of the stage.
  __device__ __forceinline__ void read(Fragments& f, const u8* stage, int offset) const {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        f.a[i][r] = word<ALIGN_A>(stage + a_[i * 2 + r % 2] + offset + r / 2 * 16);
      }
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        f.b[j][r] = word<ALIGN_B>(stage + b_[j] + offset + r * 16);
      }
    }
  }

 private:
  template <int kAlign>
  static __device__ __forceinline__ u32 word(const u8* at) {
    if constexpr (kAlign >= 4) {
      return round_tf32(*reinterpret_cast<const u32*>(at));
    } else {
      const u8* aligned = at - (shared_address(at) & 2);
      const u32* words = reinterpret_cast<const u32*>(aligned);
      return __funnelshift_r(words[0], words[1], (shared_address(at) & 2) * 8);
    }
  }

  int a_[2 * kTilesM];
  int b_[kTilesN];
};

// Takes out what lies behind the row's end: of this step only `valid` elements are there.
__device__ __forceinline__ void cut(Fragments& f, int valid) {
  constexpr int kPerWord = 4 / kElementBytes;
  const auto keep = [&](u32& word, int half) {
    const int left = valid - (lane() % 4 * kPerWord + half * kStepK / 2);
    if (left <= 0) word = 0;
    if (kPerWord == 2 && left == 1) word &= 0xffff;
  };
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) keep(f.a[i][r], r / 2);
  }
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int r = 0; r < 2; ++r) keep(f.b[j][r], r);
  }
}

__device__ __forceinline__ void multiply_all(Accumulators& acc, const Fragments& f) {
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) multiply(acc[i][j], f.a[i], f.b[j][0], f.b[j][1]);
  }
}

// Adds the products of a stage, of which `k` columns are there.
__device__ __forceinline__ void accumulate(Accumulators& acc, const FragmentReader& reader,
                                           const u8* stage, int k) {
  constexpr int kAtOnce = 2;  // steps whose fragments are asked for together
  int offset = 0;
#pragma unroll 1
  for (; k >= kAtOnce * kStepK; k -= kAtOnce * kStepK) {
    Fragments f[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) reader.read(f[s], stage, offset + s * kStepBytes);
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) multiply_all(acc, f[s]);
    offset += kAtOnce * kStepBytes;
  }
#pragma unroll 1
  for (; k > 0; k -= kStepK) {
    Fragments f;
    reader.read(f, stage, offset);
    if (k < kStepK) cut(f, k);
    multiply_all(acc, f);
    offset += kStepBytes;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
#if SPLIT_K > 1
    __cluster_dims__(SPLIT_K, 1, 1)
#endif
        gemm_mma_bulk(const __grid_constant__ GemmArgs args) {
  extern __shared__ __align__(128) u8 smem[];
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(smem);
  const u32 tiles = u32(args.tiles_m) * u32(args.tiles_n);
  const u32 stride = gridDim.x / SPLIT_K;
  const int part = SPLIT_K > 1 ? int(cluster_rank()) : 0;
  const int k_tiles = args.k / BLOCK_K + (args.k % BLOCK_K != 0);
  const PartRange range(part, k_tiles / SPLIT_K, k_tiles % SPLIT_K);

  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) barrier_init(shared_address(&shared.full[s]), kSlots);
#if SPLIT_K > 1
    barrier_init(shared_address(&shared.landed), 1);
#endif
    barrier_init_fence();
  }
  __syncthreads();
  if constexpr (SPLIT_K > 1) cluster_arrive_relaxed();
  wait_for_launch_ahead();

  u32 turn = 0;   // k tiles that went through the ring before
  u32 round = 0;  // tiles of C
  for (u32 id = blockIdx.x / SPLIT_K; id < tiles; id += stride, ++round) {
    const TilePlace tile(tile_of(id, args));
    const RowCopies copies(args, tile, range.first);
#pragma unroll 1
    for (int i = 0; i < min(range.count, STAGES); ++i) copies.start(shared, turn + i, i, args.k);

    Accumulators acc = {};
    const FragmentReader reader(args, tile);
#pragma unroll 1
    for (int i = 0; i < range.count; ++i, ++turn) {
      const u32 stage = turn % STAGES;
      barrier_wait(shared_address(&shared.full[stage]), turn / STAGES & 1);
      const int k_left = args.k - (range.first + i) * BLOCK_K;
      accumulate(acc, reader, shared.ring.stages[stage], min(k_left, BLOCK_K));
      if (i + STAGES < range.count) {
        __syncthreads();  // all have read it
        copies.start(shared, turn + STAGES, i + STAGES, args.k);
      }
    }

    __syncthreads();  // sums are laid out where the ring was
    lay_out(shared.ring.sums, acc);
    __syncthreads();
#if SPLIT_K > 1
    if (round == 0) cluster_wait();  // the others' barriers are set up
    give_rows(shared, args, tile, part);
#endif
    store_share(shared, args, tile, part, round & 1);
    if (id + stride < tiles) {  // before copies come where sums were, and the others give again
      fence_async_proxy();
      __syncthreads();
      if constexpr (SPLIT_K > 1) cluster_meet();
    }
  }
}

// GEMM for rows that begin anywhere: mma.sync, fed by the bulk copy engine, sm_90 and up.
//
// Operands are contiguous along k. A row of a tile comes as one bulk copy of all the 16-byte pieces
// that it touches, and lies in shared memory as far behind a line of 128 bytes as it does in global
// memory (copies that must shift their lines take half as long again). So a row begins where it
// likes, and fragments are read there, word by word. A block's k tiles travel through a ring of
// `stages`, which a block with few of them fills but once. Rows that are all of k and lie close to
// each other come as one run, by cp.async.
//
// Where k is split, the parts of a tile are the blocks of a cluster: each gives the others what it
// has of their rows, and stores the sum of its own.
//
// In the order of the text: mma_instruction.cuh, split.cuh, hopper.cuh, mma_bulk_tile.cuh,
// mma_bulk_load.cuh, mma_bulk_store.cuh and this file.

// The words of a lane for one step along k, as the instruction has them.
struct Fragments {
  u32 a[kTilesM][4];
  u32 b[kTilesN][2];
};

// The word at `address + kOffset` of shared memory, which begins on `kAlign` bytes.
template <int kAlign, int kOffset>
__device__ __forceinline__ u32 word_at(u32 address) {
  u32 low;
  asm volatile("ld.shared.u32 %0, [%1+%2];\n" : "=r"(low) : "r"(address & ~3), "n"(kOffset));
  if constexpr (kAlign >= 4) return round_tf32(low);
  u32 high;
  asm volatile("ld.shared.u32 %0, [%1+%2];\n" : "=r"(high) : "r"(address & ~3), "n"(kOffset + 4));
  return __funnelshift_r(low, high, address << 3);  // by bits 0..4 of that: none, or half a word
}

// Where a lane's fragments begin: of each group of 8 rows or columns its own row's word.
class FragmentReader {
 public:
  FragmentReader() = default;
  __device__ __forceinline__ FragmentReader(const SharedMemory& shared, const GemmArgs& args,
                                            const TilePlace& tile, bool in_runs) {
    const WarpPlace place;
    const u32 ring = shared_address(&shared) + lane() % 4 * 4;
#pragma unroll
    for (int i = 0; i < 2 * kTilesM; ++i) {
      const int row = row_of_group<kClassesA>(place.group_m + i, lane() / 4);
      a_[i] = ring + place_in_stage(args.a, tile.row, row, args.lda, in_runs);
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
      const int col = row_of_group<kClassesB>(place.group_n + j, lane() / 4);
      b_[j] =
          ring + BLOCK_M * kSlotBytes + place_in_stage(args.b, tile.col, col, args.ldb, in_runs);
    }
  }

  // Of kSteps steps, the first of which begins `offset` bytes behind the rows' first in the ring.
  template <int kSteps>
  __device__ __forceinline__ void read(Fragments (&f)[kSteps], u32 offset) const {
    read_step<0>(f, offset);
  }

 private:
  template <int kStep, int kSteps>
  __device__ __forceinline__ void read_step(Fragments (&f)[kSteps], u32 offset) const {
    if constexpr (kStep < kSteps) {
      constexpr int kAt = kStep * kStepBytes;
#pragma unroll
      for (int i = 0; i < 2 * kTilesM; ++i) {
        f[kStep].a[i / 2][i % 2] = word_at<ALIGN_A, kAt>(a_[i] + offset);
        f[kStep].a[i / 2][i % 2 + 2] = word_at<ALIGN_A, kAt + 16>(a_[i] + offset);
      }
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        f[kStep].b[j][0] = word_at<ALIGN_B, kAt>(b_[j] + offset);
        f[kStep].b[j][1] = word_at<ALIGN_B, kAt + 16>(b_[j] + offset);
      }
      read_step<kStep + 1>(f, offset);
    }
  }

  u32 a_[2 * kTilesM];
  u32 b_[kTilesN];
};

// Takes out what lies behind the rows' end: of a step only `valid` elements are there.
__device__ __forceinline__ void cut(Fragments& f, int valid) {
  constexpr int kPerWord = 4 / kElementBytes;
  u32 keep[2];  // of the words in each half of the step
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int left = valid - (lane() % 4 * kPerWord + half * kStepK / 2);
    keep[half] = left >= kPerWord ? ~0u : left == 1 ? 0xffff : 0;
  }
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int r = 0; r < 4; ++r) f.a[i][r] &= keep[r / 2];
  }
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int r = 0; r < 2; ++r) f.b[j][r] &= keep[r];
  }
}

// Steps whose fragments are asked for together: as many as registers are free for.
constexpr int kStepRegisters = 4 * kTilesM + 2 * kTilesN;
constexpr int kGroup = kStepRegisters <= 12 ? 4 : kStepRegisters <= 24 ? 2 : 1;

// Neighbouring steps add to sums of their own where a warp has so few tiles that an instruction
// would wait for the one before it.
template <int kSteps>
__device__ __forceinline__ void multiply_all(Accumulators (&acc)[kChains],
                                             const Fragments (&f)[kSteps]) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        multiply(acc[s % kChains][i][j], f[s].a[i], f[s].b[j][0], f[s].b[j][1]);
      }
    }
  }
}

// Adds the products of the stage that begins `stage` bytes into the ring, of which `k` columns are
// there: the warps at different places along k by turns.
__device__ __forceinline__ void accumulate(Accumulators (&acc)[kChains],
                                           const FragmentReader& reader, u32 stage, int k) {
  constexpr int kGroupK = kGroup * kStepK;
#pragma unroll 1
  for (int at = WarpPlace().k * kGroupK; at < k; at += WARPS_K * kGroupK) {
    Fragments f[kGroup];
    reader.read(f, stage + at * kElementBytes);
    if (at + kGroupK > k) {
#pragma unroll
      for (int s = 0; s < kGroup; ++s) cut(f[s], k - at - s * kStepK);
    }
    multiply_all(acc, f);
  }
}

// By all threads. The other blocks of the cluster may use them behind cluster_wait().
__device__ __forceinline__ void set_up_barriers(SharedMemory& shared) {
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

  const bool in_runs = rows_are_runs(args);
  wait_for_launch_ahead();

  u32 id = blockIdx.x / SPLIT_K;
  u32 turn = 0;   // k tiles that went through the ring before
  u32 round = 0;  // tiles of C
  for (;; ++round) {
    const TilePlace tile(tile_of(id, args));
    RowCopies copies;
    if (in_runs) {  // they need no barrier, and so are asked for before all else
      if (range.count > 0) start_runs(shared, args, tile, turn % STAGES);
    } else {
      copies = RowCopies(args, tile, range.first);
    }
    if (round == 0) set_up_barriers(shared);
    Accumulators acc[kChains] = {};
    FragmentReader reader;
    int started = 0;
#pragma unroll 1
    for (int i = 0; i < range.count; ++i) {
      const u32 stage = (turn + i) % STAGES;
      if (!in_runs) {
        if (i > 0 && started < range.count) {  // all have read the k tile before
          fence_async_proxy();
          __syncthreads();
        }
#pragma unroll 1
        for (; started < min(i + STAGES, range.count); ++started) {
          copies.start(shared, turn + started, started, args.k);
        }
      }
      // While copies are under way.
      if (i == 0) reader = FragmentReader(shared, args, tile, in_runs);
      if (in_runs) {
        wait_for_runs();
      } else {
        barrier_wait(shared_address(&shared.full[stage]), (turn + i) / STAGES & 1);
      }
      const int k_left = args.k - (range.first + i) * BLOCK_K;
      accumulate(acc, reader, stage * u32(sizeof(shared.ring.stages[0])), min(k_left, BLOCK_K));
    }
    turn += range.count;

#if SPLIT_K > 1
    if (round == 0) cluster_wait();  // the others' barriers are set up
#endif
    __syncthreads();  // sums are laid out where the ring was
    lay_out(shared, acc);
    __syncthreads();
#if SPLIT_K > 1
    give_rows(shared, args, tile, part);
#endif
    store_share(shared, args, tile, part, round & 1);
    id += stride;
    if (id >= tiles) return;
    fence_async_proxy();  // before copies come where sums were, and the others give again
    __syncthreads();
    if constexpr (SPLIT_K > 1) cluster_meet();
  }
}

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

// A lane's next words, of which the first begins at `address` of shared memory, on kAlign bytes.
template <int kAlign, int kWords>
__device__ __forceinline__ void read_words(u32 (&w)[kWords], u32 address) {
  if constexpr (kLanesHavePieces && kAlign >= 16 && kWords % 4 == 0) {
#pragma unroll
    for (int i = 0; i < kWords; i += 4) {
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(w[i]), "=r"(w[i + 1]), "=r"(w[i + 2]), "=r"(w[i + 3])
                   : "r"(address + i * 4));
    }
  } else if constexpr (kLanesHavePieces && kAlign >= 8) {
#pragma unroll
    for (int i = 0; i < kWords; i += 2) {
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n"
                   : "=r"(w[i]), "=r"(w[i + 1])
                   : "r"(address + i * 4));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      asm volatile("ld.shared.u32 %0, [%1];\n" : "=r"(w[i]) : "r"(address + i * kWordStride));
    }
  }
}

// The same where they begin on 2 bytes: each is made of two.
template <int kWords>
__device__ __forceinline__ void read_halves(u32 (&w)[kWords], u32 address) {
  u32 whole[kWords + 1];
  read_words<4>(whole, address & ~3);
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    w[i] = __funnelshift_r(whole[i], whole[i + 1], address << 3);  // by bits 0..4 of that: 0 or 16
  }
}

// Steps whose fragments are asked for together: as many as registers are free for.
constexpr int kStepRegisters = 4 * kTilesM + 2 * kTilesN;
constexpr int kGroup = kStepRegisters <= 12 ? 4 : kStepRegisters <= 24 ? 2 : 1;

// Where a lane's fragments begin: of each group of 8 rows or columns its own row's word.
class FragmentReader {
 public:
  FragmentReader() = default;
  __device__ __forceinline__ FragmentReader(const SharedMemory& shared, const GemmArgs& args,
                                            const TilePlace& tile, bool in_runs) {
    const WarpPlace place;
    const u32 ring = shared_address(&shared) + lane() % 4 * kLaneStride;
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

  // Of kGroup steps, the lane's words of which begin `offset` bytes behind its first in the ring.
  __device__ __forceinline__ void read(Fragments (&f)[kGroup], u32 offset) const {
#pragma unroll
    for (int i = 0; i < 2 * kTilesM; ++i) {
      u32 w[2 * kGroup];
      read_row<ALIGN_A>(w, a_[i] + offset);
#pragma unroll
      for (int j = 0; j < 2 * kGroup; ++j) f[j / 2].a[i / 2][i % 2 + j % 2 * 2] = w[j];
    }
#pragma unroll
    for (int i = 0; i < kTilesN; ++i) {
      u32 w[2 * kGroup];
      read_row<ALIGN_B>(w, b_[i] + offset);
#pragma unroll
      for (int j = 0; j < 2 * kGroup; ++j) f[j / 2].b[i][j % 2] = w[j];
    }
  }

 private:
  template <int kAlign, int kWords>
  static __device__ __forceinline__ void read_row(u32 (&w)[kWords], u32 address) {
    if constexpr (kAlign < 4) {
      read_halves(w, address);
    } else {
      read_words<kAlign>(w, address);
#pragma unroll
      for (int i = 0; i < kWords; ++i) w[i] = round_tf32(w[i]);
    }
  }

  u32 a_[2 * kTilesM];
  u32 b_[kTilesN];
};

// Takes out what lies behind the rows' end, `valid` elements behind the lane's first.
__device__ __forceinline__ void cut(Fragments (&f)[kGroup], int valid) {
  constexpr int kPerWord = 4 / kElementBytes;
#pragma unroll
  for (int word = 0; word < 2 * kGroup; ++word) {
    const int left = valid - word * kWordStride / kElementBytes;
    const u32 keep = left >= kPerWord ? ~0u : left == 1 ? 0xffff : 0;
    Fragments& step = f[word / 2];
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      step.a[i][word % 2 * 2] &= keep;
      step.a[i][word % 2 * 2 + 1] &= keep;
    }
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) step.b[j][word % 2] &= keep;
  }
}

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
  constexpr int kGroups = kChunkSteps / kGroup;  // of a chunk
  constexpr int kGroupBytes = 2 * kGroup * kWordStride;
  const int count = (k + kChunkK - 1) / kChunkK * kGroups;
#pragma unroll 1
  for (int i = WarpPlace().k; i < count; i += WARPS_K) {
    const int chunk = i / kGroups;
    const int behind = i % kGroups * kGroupBytes;
    Fragments f[kGroup];
    reader.read(f, stage + chunk * kChunkBytes + behind);
    const int left = k - chunk * kChunkK;
    if (left < kChunkK) cut(f, left - (lane() % 4 * kLaneStride + behind) / kElementBytes);
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

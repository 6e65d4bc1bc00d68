// GEMM for rows that begin anywhere: mma.sync, fed by the bulk copy engine, sm_90 and up.
//
// Operands are contiguous along k. A row of a tile comes as one bulk copy of all the 16-byte pieces
// that it touches, and lies in shared memory as far behind a line of 128 bytes as it does in global
// memory (copies that must shift their lines take half as long again). So a row begins where it
// likes, and fragments are read there, word by word. A block's k tiles travel through a ring of
// `stages`, which a block with few of them fills but once. Rows that are all of k and lie close to
// each other come as one run, by cp.async. With `boxes` rows come by tensor maps, all that begin
// alike at once.
//
// Where k is split, the parts of a tile are the blocks of a cluster: each gives the others what it
// has of their rows, and stores the sum of its own.
//
// In the order of the text: mma_instruction.cuh, split.cuh, hopper.cuh, mma_bulk_tile.cuh,
// mma_bulk_load.cuh, mma_bulk_boxes.cuh, mma_bulk_fragments.cuh, mma_bulk_store.cuh and this file.

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

#if BOXES
typedef MmaBulkArgs KernelArgs;
typedef BoxCopies Copies;
constexpr int kArrivals = kBoxes;
__device__ __forceinline__ const GemmArgs& gemm_args(const MmaBulkArgs& args) { return args.gemm; }
#else
typedef GemmArgs KernelArgs;
typedef RowCopies Copies;
constexpr int kArrivals = kSlots;
__device__ __forceinline__ const GemmArgs& gemm_args(const GemmArgs& args) { return args; }
#endif

// By all threads. The other blocks of the cluster may use them behind cluster_wait().
__device__ __forceinline__ void set_up_barriers(SharedMemory& shared) {
  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) barrier_init(shared_address(&shared.full[s]), kArrivals);
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
        gemm_mma_bulk(const __grid_constant__ KernelArgs whole) {
  const GemmArgs& args = gemm_args(whole);
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
    Copies copies;
    if (in_runs) {  // they need no barrier, and so are asked for before all else
      if (range.count > 0) start_runs(shared, args, tile, turn % STAGES);
    } else {
      copies = Copies(whole, tile, range.first);
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

// C = alpha * A * B + beta * C, or the gated product of A with two matrices of weights, on Hopper's
// warpgroup matrix instructions. One warpgroup feeds a ring of stages through the tensor copy
// engine; the others multiply and store. The grid is persistent.
//
//   full[s]    the bytes of stage s have arrived          (producer -> consumers)
//   empty[s]   every consumer that reads stage s is done  (consumers -> producers of the cluster)

// K tiles of a tile of C from which on its products take longer than the stores of another, one by
// one (NOTES.md).
constexpr int kPacedTiles = 8;

__device__ __forceinline__ void consume(const WgmmaArgs& args, SharedMemory& shared,
                                        ClusterPlace place, u32 units, int k_tiles, int consumer) {
  const int warp = int(threadIdx.x / 32 % 4);
  const int storer = (consumer * 4 + warp) / kStoreWarps;
  const int first_row = PINGPONG ? 0 : consumer * kConsumerRows;
  const StageRelease release;
#if !STORES_IN_RING
  StoreBuffers& buffers = shared.stores[storer];
  u32 filled = 0;  // of them, so far
#endif
  Exchange exchange(shared);
  RingPosition at{0, 0};
  u32 id = first_unit(args);
  const u32 stride = next_unit();
  if (PINGPONG && consumer == 1) {  // the two take turns, tile by tile
    at.advance(unit_of(id, args, place, k_tiles).count);
    id += stride;
  }
  // A wait tells a stage's pass from the one before only: the other consumer's passes must be over.
  u32 turn_parity = consumer == 0 ? 1 : 0;
  for (; id < units; id += PINGPONG ? 2 * stride : stride) {
    const Unit unit = unit_of(id, args, place, k_tiles);
    float acc[kTilesM][kAccumulators];
    if constexpr (SPLIT_K > 1) clear(acc);
    if (PINGPONG) {
      barrier_wait(shared_address(&shared.turn[consumer]), turn_parity);
      turn_parity ^= 1;
    }
    const u32 held =
        accumulate_tile(acc, shared, at, first_row, unit.count, release, shared.turn[1 - consumer]);
    if (PINGPONG) at.advance(unit.count);
    const bool last = id + stride >= units;
    if (GATED && last) admit_launch_behind(args.gemm);

#if STORES_IN_RING
    block_wait<CONSUMERS * 128>();  // until no warp's product reads that stage
    if (kCluster > 1 && last) release(shared.empty[held]);  // nobody fills it any more
    StoreBuffers& buffers = reinterpret_cast<StoreBuffers*>(&shared.stages[held])[storer];
    u32 filled = 0;
#endif
    const bool paced = PINGPONG && !last && unit.count >= kPacedTiles;
    store_tile(buffers, filled, acc, args, exchange, unit, unit.row + first_row + warp * 16, paced);
#if STORES_IN_RING
    if (!last) {
      if (leads_store()) tma_store_wait<0>();
      fence_async_proxy();
      block_wait<CONSUMERS * 128>();
      release(shared.empty[held]);
    }
#endif
  }
  if (leads_store()) tma_store_wait<0>();
  exchange.wait_until_read();
}

#if GATED
typedef GatedWgmmaArgs KernelArgs;
#elif PACKED
typedef PackedWgmmaArgs KernelArgs;
#else
typedef WgmmaArgs KernelArgs;
#endif

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
#if CLUSTER_M * CLUSTER_N * SPLIT_PARTS > 1
    __cluster_dims__(CLUSTER_M* CLUSTER_N* SPLIT_PARTS, 1, 1)
#endif
        gemm_wgmma(const __grid_constant__ KernelArgs args) {
  extern __shared__ __align__(1024) u8 smem[];
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(smem);
  const int warpgroup = int(__shfl_sync(0xffffffff, threadIdx.x / 128, 0));
  const ClusterPlace place;

  if (threadIdx.x == 32) {
    prefetch_map(args.map_a);
    prefetch_map(args.map_b);
#if GATED
    prefetch_map(args.map_up);
#endif
    if (ALIGN_C == 16) prefetch_map(args.map_c);
    if (ALIGN_C == 16 && REST_N != CHUNK_N) prefetch_map(args.map_c_rest);
  }
  u32 units = u32(args.gemm.tiles_m) * u32(args.gemm.tiles_n);
  const int k_tiles = args.gemm.k / BLOCK_K + (args.gemm.k % BLOCK_K != 0);
  if constexpr (kGrouped) units *= args.split.groups;
#if PACKED
  wait_for_launch_ahead();
  pack_operands(args.pack);
#endif
  if (threadIdx.x == 0) {
    set_up_opening(shared);
    if constexpr (!PACKED) wait_for_launch_ahead();
    open_ring(args, shared, place, k_tiles);
    set_up_barriers(shared);
  }
  if constexpr (kMeets) {  // others speak to this block's barriers
    __syncwarp();
    cluster_arrive_relaxed();
  }
  if constexpr (kCluster > 1) cluster_wait();
  if (warpgroup == 0) {
    if constexpr (PRODUCER_REGISTERS > 0) give_registers<PRODUCER_REGISTERS>();
    if (!kMeets && threadIdx.x < 32) {  // only the consumers wait for the barriers
      __syncwarp();
      block_arrive<32 + CONSUMERS * 128>();
    }
    if (threadIdx.x == 0) produce(args, shared, place, units, k_tiles);
    if constexpr (kParts > 1) {
      __syncwarp();
      cluster_wait();
    }
  } else {
    if constexpr (CONSUMER_REGISTERS > 0) take_registers<CONSUMER_REGISTERS>();
    if constexpr (!kMeets) block_wait<32 + CONSUMERS * 128>();
    if constexpr (kParts > 1) cluster_wait();
    consume(args, shared, place, units, k_tiles, warpgroup - 1);
  }
}

// C = alpha * A * B + beta * C, or the gated product of A with two matrices of weights, for fp32 on
// Hopper's warpgroup matrix instructions: each operand is cut into three bf16 parts
// (fp32_parts.cuh). One thread feeds a ring of stages through the tensor copy engine; a few warps
// cut B into a second ring; warpgroups of 64 rows cut A into registers, multiply and store. The
// grid is persistent.

__device__ __forceinline__ void consume(const WgmmaFp32Args& args, SharedMemory& shared, u32 tiles,
                                        int k_tiles, int consumer) {
  const int warp = int(threadIdx.x / 32 % 4);
  Consumer at(shared, consumer * 64 + warp * 16);
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    const TileIndex tile = tile_of(id, args.gemm);
    Accumulators acc;
    // A row of A is held by four lanes of one warp.
    const bool lost = __any_sync(0xffffffff, accumulate_tile(at, acc, k_tiles, id));
    store_tile(acc, args.gemm, tile.m * BLOCK_M + consumer * 64, tile.n * BLOCK_N, lost);
  }
}

#if GATED
typedef GatedWgmmaFp32Args KernelArgs;
#elif PACKED
typedef PackedWgmmaFp32Args KernelArgs;
#else
typedef WgmmaFp32Args KernelArgs;
#endif

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_wgmma_fp32(const __grid_constant__ KernelArgs args) {
  extern __shared__ __align__(1024) u8 smem[];
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(smem);
  const int warp = int(__shfl_sync(0xffffffff, threadIdx.x / 32, 0));

  if (threadIdx.x == 32) {
    prefetch_map(args.map_a);
    prefetch_map(args.map_b);
#if GATED
    prefetch_map(args.map_up);
#endif
  }
  const u32 tiles = u32(args.gemm.tiles_m) * u32(args.gemm.tiles_n);
  const int k_tiles = args.gemm.k / BLOCK_K + (args.gemm.k % BLOCK_K != 0);
#if PACKED
  wait_for_launch_ahead();
  pack_operands(args.pack);
#endif
  if (threadIdx.x == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) barrier_init(shared_address(&shared.full[s]), 1);
    barrier_init_fence();
    if constexpr (!PACKED) wait_for_launch_ahead();
    open_ring(args, shared, k_tiles);
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(shared_address(&shared.empty[s]), CUTTERS + 4 * kConsumers);
    }
#pragma unroll
    for (int s = 0; s < CUT_STAGES; ++s) {
      barrier_init(shared_address(&shared.cut_full[s]), CUTTERS);
      barrier_init(shared_address(&shared.cut_empty[s]), 4 * kConsumers);
      shared.lost[s] = kNoTile;
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (warp < 4 * kHelpers) {
    if constexpr (HELPER_REGISTERS > 0) give_registers<HELPER_REGISTERS>();
    if (threadIdx.x == 0) {
      produce(args, shared, tiles, k_tiles);
    } else if (warp > 0 && warp <= CUTTERS) {
      cut_stages(shared, tiles, k_tiles, warp - 1);
    }
  } else {
    if constexpr (CONSUMER_REGISTERS > 0) take_registers<CONSUMER_REGISTERS>();
    consume(args, shared, tiles, k_tiles, warp / 4 - kHelpers);
  }
}

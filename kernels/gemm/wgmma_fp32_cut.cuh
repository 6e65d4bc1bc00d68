// The warps that feed the consumers: one thread that loads both operands through the copy engine,
// and the warps that cut B into its parts.

__device__ __forceinline__ void load_stage(const WgmmaFp32Args& args, SharedMemory& shared, u32 at,
                                           TileIndex tile, int step) {
  const u32 full = shared_address(&shared.full[at]);
  barrier_expect(full, sizeof(Stage));
  Stage& stage = shared.stages[at];
  const int first_m = tile.m * BLOCK_M;
  const int first_n = tile.n * BLOCK_N;
  const int k = step * BLOCK_K;
  load_operand<TileA, A_K_MAJOR>(shared_address(&stage.a), args.map_a, first_m, k, full);
  const u32 tile_b = shared_address(&stage.b);
  load_operand<WeightsTile, B_K_MAJOR>(tile_b, args.map_b, first_n, k, full);
  if constexpr (GATED) {
    load_operand<WeightsTile, B_K_MAJOR>(tile_b + TileB::offset(BLOCK_N, 0),
                                         static_cast<const GatedWgmmaFp32Args&>(args).map_up,
                                         first_n, k, full);
  }
}

// The block's first loads, in one straight line behind the kernel's entry, where even instructions
// come from DRAM.
__device__ __forceinline__ void open_ring(const WgmmaFp32Args& args, SharedMemory& shared,
                                          int k_tiles) {
  const TileIndex tile = tile_of(blockIdx.x, args.gemm);
#pragma unroll
  for (int i = 0; i < kOpening; ++i) {
    if (i < k_tiles) load_stage(args, shared, u32(i), tile, i);
  }
}

// All loads but those that opened the ring.
__device__ __forceinline__ void produce(const WgmmaFp32Args& args, SharedMemory& shared, u32 tiles,
                                        int k_tiles) {
  int step = min(k_tiles, kOpening);
  Ring<STAGES> at{0, 1};  // the first pass waits for nobody
  at.advance(u32(step));
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    const TileIndex tile = tile_of(id, args.gemm);
    for (; step < k_tiles; ++step) {
      barrier_wait(shared_address(&shared.empty[at.stage]), at.parity);
      load_stage(args, shared, at.stage, tile, step);
      at.advance();
    }
    step = 0;
  }
}

__device__ __forceinline__ uint4 load_shared_16(u32 address) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

// A lane's share of 8 rows of B, from the address of its fp32 to that of its parts.
__device__ __forceinline__ void cut_rows(u32 source, u32 target, u32& lost) {
  const uint4 first = load_shared_16(source);
  const uint4 second = load_shared_16(source ^ 16);
  const Parts p[4] = {cut(first.x, first.y, lost), cut(first.z, first.w, lost),
                      cut(second.x, second.y, lost), cut(second.z, second.w, lost)};
  store_shared_16(target, uint4{p[0].hi, p[1].hi, p[2].hi, p[3].hi});
  store_shared_16(target + sizeof(CutTile), uint4{p[0].mid, p[1].mid, p[2].mid, p[3].mid});
  store_shared_16(target + 2 * sizeof(CutTile), uint4{p[0].lo, p[1].lo, p[2].lo, p[3].lo});
}

// B's stages, one after the other, of all tiles of the block; `warp` counts the warps that cut.
__device__ __forceinline__ void cut_stages(SharedMemory& shared, u32 tiles, int k_tiles, int warp) {
  constexpr int kGroups = sizeof(TileB) / 1024;
  const int lane = int(threadIdx.x % 32);
  Ring<STAGES> from{0, 0};
  Ring<CUT_STAGES> to{0, 1};  // the first pass waits for nobody
  for (u32 id = blockIdx.x; id < tiles; id += gridDim.x) {
    u32 lost = 0;
    for (int i = 0; i < k_tiles; ++i) {
      barrier_wait(shared_address(&shared.full[from.stage]), from.parity);
      barrier_wait(shared_address(&shared.cut_empty[to.stage]), to.parity);
      const u32 raw = shared_address(&shared.stages[from.stage].b) + fp32_rows_source(lane);
      const u32 parts = shared_address(&shared.cuts[to.stage]) + fp32_rows_target(lane);
#pragma unroll 2
      for (int g = warp; g < kGroups; g += CUTTERS) {
        cut_rows(raw + g * 1024, parts + g * 512, lost);
      }
      if (any_lost(lost)) shared.lost[to.stage] = id;
      fence_async_proxy();  // the matrix instruction reads what was written here
      __syncwarp();
      if (lane == 0) {
        barrier_arrive(shared_address(&shared.empty[from.stage]));
        barrier_arrive(shared_address(&shared.cut_full[to.stage]));
      }
      from.advance();
      to.advance();
    }
  }
}

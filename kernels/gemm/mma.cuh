// GEMM on the warp-wide tensor-core instructions (mma.sync), sm_80 and up; fp16 on sm_75.
//
// A block computes block_m x block_n of C. Tiles of A and B travel through a ring of `stages` in
// shared memory, filled by cp.async, or through registers where rows are not aligned to 4 bytes or
// the GPU has no such copy. Each warp owns warp_m x warp_n, reads its fragments with
// ldmatrix one k step ahead of the multiplication, and keeps fp32 accumulators in registers. The
// result leaves through a small per-warp buffer, in pieces as wide as C's rows are aligned.
// fp32 is multiplied as three parts of bf16 (fp32_parts.cuh); what their sum may have missed is
// computed again by FFMA before it is stored.
//
// Gated, each warp multiplies with its columns of both matrices of weights and stores the gated
// products.
//
// Where k is split, the blocks of a tile take a range of its k tiles each, and the last one to come
// stores the sum of all.
//
// In the order of the text: activation.cuh, fp32_parts.cuh, split.cuh, mma_instruction.cuh,
// mma_tiles.cuh, mma_loader.cuh, mma_fragments.cuh, mma_products.cuh, mma_parts.cuh, mma_split.cuh,
// mma_epilogue.cuh and this file.
//
// Further constants: BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N, SPLIT_K, THREADS,
// MIN_BLOCKS, and the shared-memory layout SMEM_A_BYTES, SMEM_B_OFFSET, SMEM_B_BYTES,
// SMEM_STAGE_BYTES, SMEM_WARP_PITCH, SMEM_WARP_BYTES, SMEM_BYTES.

__device__ __forceinline__ void compute(const Args& args, const Unit& unit, u8* smem) {
  const int warp = threadIdx.x / 32;
  const TileIndex tile = tile_of(unit.id, args);
  const i64 tile_row = i64(tile.m) * BLOCK_M;
  const i64 tile_col = i64(tile.n) * BLOCK_N;
  const u32 ring = shared_address(smem);

  Loader<A_K_MAJOR, BLOCK_M, ALIGN_A> load_a(args.a, args.lda, int(tile_row), args.m, args.k);
  Loader<B_K_MAJOR, BLOCK_N, ALIGN_B> load_b(args.b, args.ldb, int(tile_col), args.n, args.k);
  Loader<B_K_MAJOR, BLOCK_N, ALIGN_B> load_up(args.up, args.ldb, int(tile_col), args.n, args.k);
  load_a.skip(unit.first);
  load_b.skip(unit.first);
  load_up.skip(unit.first);
  int k_left = unit.k;  // of the next tile to load
  int write_stage = 0;

  // Starts loading the next k tile, if there is one; the group is committed either way so that
  // counting groups counts tiles.
  auto load_next = [&]() {
    if (k_left > 0) {
      const u32 stage = ring + write_stage * SMEM_STAGE_BYTES;
      load_a.load(stage, k_left);
      load_b.load(stage + SMEM_B_OFFSET, k_left);
      if constexpr (GATED) load_up.load(stage + SMEM_B_OFFSET + u32(sizeof(TileB)), k_left);
      k_left -= BLOCK_K;
      write_stage = write_stage + 1 == STAGES ? 0 : write_stage + 1;
    }
    cp_async_commit();
  };

  float acc[kTilesM][kTilesN][4];
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) clear(acc[i]);

  // Once, where a load is long: through registers.
  constexpr bool kCopies = load_a.kAsynchronous && load_b.kAsynchronous;
#pragma unroll(kCopies ? STAGES - 1 : 1)
  for (int s = 0; s < STAGES - 1; ++s) load_next();
  cp_async_wait<STAGES - 2>();
  __syncthreads();

  const int warp_row = (warp / WARPS_N) * kWarpM;
  const int warp_col = (warp % WARPS_N) * kWarpN;
  const FragmentReader reader{int(threadIdx.x % 32), warp_row, warp_col};
  bool exact = false;  // compute this tile of C again
  if constexpr (DTYPE == DTYPE_FP32) {
    const u32 lost = accumulate_parts(acc, ring, unit.k_tiles, reader, load_next);
    cp_async_wait<0>();
    exact = __syncthreads_or(any_lost(lost));
  } else {
    accumulate(acc, ring, unit.k_tiles, reader, load_next);
    cp_async_wait<0>();
    __syncthreads();
  }
  const i64 row0 = tile_row + warp_row;
  if (!add_parts(acc, exact, args, unit, row0)) return;

  // The ring is the epilogue's buffer now.
  WarpBuffer& buffer = reinterpret_cast<WarpBuffer*>(smem)[warp];
  const i64 col0 = tile_col + warp_col;
  const int cols_left = int(min(args.n - col0, i64(kWarpN)));
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
    const i64 strip = row0 + i * 16;
    const int rows_left = int(min(args.m - strip, i64(16)));
    stage_strip(buffer, acc[i], args, strip, rows_left, col0, cols_left);
    if (DTYPE == DTYPE_FP32 && (exact || any_doubtful(acc[i]))) {
      stage_exact(buffer, args, strip, rows_left, col0, cols_left);
    }
    __syncwarp();
    store_strip(buffer, args, strip, rows_left, col0, cols_left);
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_mma(const __grid_constant__ Args args) {
  extern __shared__ __align__(128) u8 smem[];
  const u32 units = units_of(args);
  wait_for_launch_ahead();
  for (u32 id = blockIdx.x; id < units; id += gridDim.x) {
    compute(args, unit_of(id, args), smem);
    __syncthreads();  // before the next unit's loads overwrite the epilogue's buffer
  }
}

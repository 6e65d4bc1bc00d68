// A consumer's main loop: the k tiles of one tile of C, as they arrive in the ring.

// Tells every block of the cluster that a stage has been read: also those that never load it, so
// that whoever gets something for a stage's next pass from one loader has been heard by all others
// before it tells them of that pass. Were only its row and its column told, one of these could take
// that for the word of a block that is still behind.
struct StageRelease {
  u32 thread = threadIdx.x % 128;  // of the warpgroup, and the block that it tells

  __device__ __forceinline__ void operator()(u64& empty) const {
    if constexpr (kCluster == 1) {
      if (thread == 0) barrier_arrive(shared_address(&empty));
    } else {
      if (thread < kCluster) barrier_arrive_at(shared_address(&empty), thread);
    }
  }
};

// The first instruction of a tile ignores what it adds to. To ptxas it still reads it, which keeps
// registers taken from one tile to the next, unless they are written before.
template <int kCount>
__device__ __forceinline__ void clear(float (&acc)[kTilesM][kCount]) {
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
#pragma unroll
    for (int r = 0; r < kCount; ++r) acc[t][r] = 0;
  }
}

// Returns the stage of the last k tile, which is given back but where C leaves through it.
__device__ __forceinline__ u32 accumulate_tile(float (&acc)[kTilesM][kAccumulators],
                                               SharedMemory& shared, RingPosition& at,
                                               int first_row, int k_tiles,
                                               const StageRelease& release, u64& next_turn) {
  u32 previous = 0;
  for (int i = 0; i < k_tiles; ++i) {
    barrier_wait(shared_address(&shared.full[at.stage]), at.parity);
    const u32 stage = shared_address(&shared.stages[at.stage]);
    const u64 a = TileA::descriptor(stage + TileA::offset(first_row, 0));
    const u64 b = TileB::descriptor(stage + SMEM_A_BYTES);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kStepsK; ++step) {
#pragma unroll
      for (int t = 0; t < kTilesM; ++t) {
        multiply(acc[t], a + (TileA::offset(t * 64, step) >> 4), b + (TileB::offset(0, step) >> 4),
                 i + step);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();  // the k tile before this one is done
    if (i > 0) release(shared.empty[previous]);
    previous = at.stage;
    at.advance();
  }
  // Every warp for itself: were one of them not to have seen its turn yet when the other consumer
  // gives the next one, it would take that for the last.
  if (PINGPONG && threadIdx.x % 32 == 0) barrier_arrive(shared_address(&next_turn));
  wgmma_wait<0>();
  if constexpr (!STORES_IN_RING) release(shared.empty[previous]);
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
#pragma unroll
    for (int r = 0; r < kAccumulators; ++r) asm volatile("" : "+f"(acc[t][r])::"memory");
  }
  return previous;
}

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

// The products of one step of a k tile with all the consumer's rows. `a` and `b` describe the k
// tile.
__device__ __forceinline__ void multiply_step(float (&acc)[kTilesM][kAccumulators], u64 a, u64 b,
                                              int step, int accumulate) {
#pragma unroll
  for (int t = 0; t < kTilesM; ++t) {
    multiply(acc[t], a + (TileA::offset(t * 64, step) >> 4), b + (TileB::offset(0, step) >> 4),
             accumulate);
  }
}

// Adds up the k tiles of a tile of C. The matrix unit has few instructions waiting, so that what
// lies between the last of one k tile and the first of the next is short: whether that one is there
// is asked before the last step, and the k tile before is given back behind the first one. The
// answer is of no older pass of that stage, which this consumer has waited for, or the other one
// before it handed on its turn. Returns the stage of the last k tile, which is given back but where
// C leaves through it.
__device__ __forceinline__ u32 accumulate_tile(float (&acc)[kTilesM][kAccumulators],
                                               SharedMemory& shared, RingPosition& at,
                                               int first_row, int k_tiles,
                                               const StageRelease& release, u64& next_turn) {
  static_assert(kStepsK > 1, "there is a step behind the first");
  constexpr u32 kNextStage = SMEM_STAGE_BYTES >> 4;  // in a descriptor
  const u32 ring = shared_address(&shared.stages[0]);
  const u64 ring_a = TileA::descriptor(ring + TileA::offset(first_row, 0));
  const u64 ring_b = TileB::descriptor(ring + SMEM_A_BYTES);
  u64 a = ring_a + at.stage * kNextStage;
  u64 b = ring_b + at.stage * kNextStage;
  u32 previous = 0;
  bool arrived = false;
  for (int i = 0; i < k_tiles; ++i) {
    if (!arrived) barrier_wait(shared_address(&shared.full[at.stage]), at.parity);
    wgmma_fence();
    multiply_step(acc, a, b, 0, i);
    wgmma_commit();
    wgmma_wait<1>();  // the k tile before this one is done
    if (i > 0) release(shared.empty[previous]);
    previous = at.stage;
#pragma unroll
    for (int step = 1; step < kStepsK - 1; ++step) multiply_step(acc, a, b, step, 1);
    at.advance();
    const u64 next_a = at.stage == 0 ? ring_a : a + kNextStage;
    const u64 next_b = at.stage == 0 ? ring_b : b + kNextStage;
    arrived = i + 1 < k_tiles && barrier_passed(shared_address(&shared.full[at.stage]), at.parity);
    multiply_step(acc, a, b, kStepsK - 1, 1);
    wgmma_commit();
    a = next_a;
    b = next_b;
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

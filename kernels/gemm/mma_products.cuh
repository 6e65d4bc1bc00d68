// The multiplication of fragments.

__device__ __forceinline__ void clear(float (&strip)[kTilesN][4]) {
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int r = 0; r < 4; ++r) strip[j][r] = 0.0f;
  }
}

__device__ __forceinline__ void multiply_all(float (&acc)[kTilesM][kTilesN][4],
                                             const Fragments& f) {
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int jj = 0; jj < kTilesN; ++jj) {
      const int j = i % 2 ? kTilesN - 1 - jj : jj;  // back and forth: a fragment is used twice
      multiply(acc[i][j], f.a[i], f.b[j / 2][(j % 2) * 2], f.b[j / 2][(j % 2) * 2 + 1]);
    }
  }
}

// Adds the products of all k tiles: the native types' way through k. `load_next` starts the load of
// the next k tile.
template <typename LoadNext>
__device__ __forceinline__ void accumulate(float (&acc)[kTilesM][kTilesN][4], u32 ring, int k_tiles,
                                           const FragmentReader& reader, LoadNext& load_next) {
  Fragments fragments[2];
  u32 read_stage = ring;
  reader.load(fragments[0], read_stage, 0);

  for (int tile_k = 0; tile_k < k_tiles; ++tile_k) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step == kSteps - 1) {
        // All reads of this stage are done and the next tile has arrived, for every warp.
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        read_stage += SMEM_STAGE_BYTES;
        if (read_stage == ring + STAGES * SMEM_STAGE_BYTES) read_stage = ring;
      }
      reader.load(fragments[(step + 1) % 2], read_stage, (step + 1) % kSteps);
      if (step == 0) load_next();
      multiply_all(acc, fragments[step % 2]);
    }
  }
}

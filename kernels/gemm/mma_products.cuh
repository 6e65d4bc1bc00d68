// The multiplication of fragments.

// d += a * b on one 16 x 8 x (16 or, for tf32, 8) tile.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
#define AT_MMA(shape_and_types)                                                     \
  asm volatile("mma.sync.aligned." shape_and_types                                  \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (DTYPE == DTYPE_BF16 || DTYPE == DTYPE_FP32) {  // fp32 comes in parts of bf16
    AT_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else if constexpr (DTYPE == DTYPE_FP16) {
    AT_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else {
    AT_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#undef AT_MMA
#else
  // sm_75 multiplies 8 deep: the same fragments in two halves.
#define AT_MMA(a0, a1, b)                                      \
  asm volatile(                                                \
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"       \
      " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])         \
      : "r"(a0), "r"(a1), "r"(b))
  AT_MMA(a[0], a[1], b0);
  AT_MMA(a[2], a[3], b1);
#undef AT_MMA
#endif
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

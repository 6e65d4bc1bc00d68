// The way of an operand from shared memory into registers.

__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ u32 load_shared_4(u32 address) {
  u32 value;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(value) : "r"(address) : "memory");
  return value;
}

// The fragments of one k step: 16-row tiles of A, pairs of 8-column tiles of B.
struct Fragments {
  u32 a[kTilesM][4];
  u32 b[kTilesN / 2][4];
};

// Where this lane reads its fragments; the rest is constants that the compiler folds.
struct FragmentReader {
  int lane;
  int first_m;
  int first_n;

  __device__ __forceinline__ void load(Fragments& f, u32 stage, int step) const {
    const u32 tile_a = stage;
    const u32 tiles_b = stage + SMEM_B_OFFSET;
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
      const int m = first_m + i * 16;
      if constexpr (A_K_MAJOR) {
        ldmatrix_x4(f.a[i], tile_a + TileA::offset(m + (lane & 15), step * 2 + (lane >> 4)));
      } else if constexpr (kElementBytes == 2) {
        const int k = step * kStepK + (lane & 7) + ((lane >> 4) << 3);
        ldmatrix_x4_trans(f.a[i], tile_a + TileA::offset(k, m / 8 + ((lane >> 3) & 1)));
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          f.a[i][r] = word<TileA>(tile_a, step * 8 + (r / 2) * 4, m + (r % 2) * 8);
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) f.a[i][r] = round_tf32(f.a[i][r]);
    }
#pragma unroll
    for (int j = 0; j < kTilesN / 2; ++j) {
      constexpr int kPairsC = kTilesC / 2;
      const u32 tile_b = j < kPairsC ? tiles_b : tiles_b + u32(sizeof(TileB));
      const int n = first_n + j % kPairsC * 16;
      if constexpr (B_K_MAJOR) {
        const int row = n + (lane & 7) + ((lane >> 4) << 3);
        ldmatrix_x4(f.b[j], tile_b + TileB::offset(row, step * 2 + ((lane >> 3) & 1)));
      } else if constexpr (kElementBytes == 2) {
        const int k = step * kStepK + (lane & 15);
        ldmatrix_x4_trans(f.b[j], tile_b + TileB::offset(k, n / 8 + (lane >> 4)));
      } else {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          f.b[j][r] = word<TileB>(tile_b, step * 8 + (r % 2) * 4, n + (r / 2) * 8);
        }
      }
#pragma unroll
      for (int r = 0; r < 4; ++r) f.b[j][r] = round_tf32(f.b[j][r]);
    }
  }

 private:
  // One tf32 element of an MN-major tile: ldmatrix transposes 16-bit elements only.
  template <typename T>
  __device__ __forceinline__ u32 word(u32 tile, int k, int position) const {
    const int p = position + lane / 4;
    return load_shared_4(tile + T::offset(k + lane % 4, p / 4) + (p % 4) * 4);
  }
};

// The multiplication of fp32 on tensor cores: fragments of fp32 words are cut into three bf16 and
// six products of parts take the place of one.
//
// The tensor cores truncate when they add, and a bias would grow with k. So they add the products
// of 16 of k only, the small ones first, and a rounding addition brings them to the others: in
// emulation 0.2 to 0.8 of the error of an fp32 FFMA chain over k of 64 to 16384 (1.7 where 40
// powers of two lie between the elements and k is 64); with 32 of k, up to 14 times that error.

// Tiles along n that are multiplied at once: enough for the tensor cores not to wait for one
// product before its next, few enough for their sums to stay in registers.
constexpr int kTilesAtOnce = kTilesM >= 8 ? 1 : kTilesN < 8 / kTilesM ? kTilesN : 8 / kTilesM;
// A small warp tile adds the large products apart from the small ones, so as not to wait either.
constexpr int kChains = kTilesM * kTilesAtOnce <= 4 ? 2 : 1;

struct PartFragments {
  u32 a[3][kTilesM][4];
  u32 b[3][kTilesN][2];

  // The k of an instruction may come in any order that is the same for A and B. A lane holds words
  // t and t + 4 of each step of 8; they become neighbours in one register.
  __device__ __forceinline__ void cut_from(const Fragments (&words)[2], u32& lost) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const Parts parts = cut(words[half].a[i][r], words[half].a[i][r + 2], lost);
          a[0][i][half * 2 + r] = parts.hi;
          a[1][i][half * 2 + r] = parts.mid;
          a[2][i][half * 2 + r] = parts.lo;
        }
      }
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        const u32(&pair)[4] = words[half].b[j / 2];
        const Parts parts = cut(pair[j % 2 * 2], pair[j % 2 * 2 + 1], lost);
        b[0][j][half] = parts.hi;
        b[1][j][half] = parts.mid;
        b[2][j][half] = parts.lo;
      }
    }
  }
};

__device__ __forceinline__ void multiply_parts(float (&acc)[kTilesM][kTilesN][4],
                                               const PartFragments& f) {
  constexpr int kProducts = 6;
  constexpr int kPartOfA[kProducts] = {2, 0, 1, 1, 0, 0};
  constexpr int kPartOfB[kProducts] = {0, 2, 1, 0, 1, 0};
#pragma unroll
  for (int first = 0; first < kTilesN; first += kTilesAtOnce) {
    float sum[kChains][kTilesM][kTilesAtOnce][4] = {};
#pragma unroll
    for (int product = 0; product < kProducts; ++product) {
      const int chain = product * kChains / kProducts;
#pragma unroll
      for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
        for (int j = 0; j < kTilesAtOnce && first + j < kTilesN; ++j) {
          const u32(&b)[2] = f.b[kPartOfB[product]][first + j];
          multiply(sum[chain][i][j], f.a[kPartOfA[product]][i], b[0], b[1]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
      for (int j = 0; j < kTilesAtOnce && first + j < kTilesN; ++j) {
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          // First to each other: small ones alone would vanish beside a large sum.
          const float large = sum[kChains - 1][i][j][r];
          acc[i][first + j][r] += kChains == 1 ? large : sum[0][i][j][r] + large;
        }
      }
    }
  }
}

// Adds the products of all k tiles as accumulate() does. Returns what cut() gathered.
template <typename LoadNext>
__device__ __forceinline__ u32 accumulate_parts(float (&acc)[kTilesM][kTilesN][4], u32 ring,
                                                int k_tiles, const FragmentReader& reader,
                                                LoadNext& load_next) {
  constexpr int kPartSteps = kSteps / 2;  // two steps of 8 words are one of 16 in parts
  Fragments words[2];
  PartFragments parts;
  u32 lost = 0;
  u32 read_stage = ring;
  reader.load(words[0], read_stage, 0);
  reader.load(words[1], read_stage, 1);

  for (int tile_k = 0; tile_k < k_tiles; ++tile_k) {
#pragma unroll
    for (int step = 0; step < kPartSteps; ++step) {
      parts.cut_from(words, lost);
      // Into the stage whose last words were cut before the barrier of the tile before.
      if (step == 0) load_next();
      if (step == kPartSteps - 1) {
        // All words of this stage are in registers and the next tile has arrived, for every warp.
        cp_async_wait<STAGES - 2>();
        __syncthreads();
        read_stage += SMEM_STAGE_BYTES;
        if (read_stage == ring + STAGES * SMEM_STAGE_BYTES) read_stage = ring;
      }
      reader.load(words[0], read_stage, (step + 1) % kPartSteps * 2);
      reader.load(words[1], read_stage, (step + 1) % kPartSteps * 2 + 1);
      multiply_parts(acc, parts);
    }
  }
  return lost;
}

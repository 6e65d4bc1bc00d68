// The epilogue: C straight from registers. What the parts may not have summed up right is computed
// again, element by element.

// A thread's sums, those of all chains behind each other. Element e of its part of C has number e
// and, gated, its factor number e + kUpSum.
__device__ __forceinline__ float sum_of(const Accumulators& acc, int index) {
  return acc.sum[index / kChainRegisters][index % kChainRegisters];
}
constexpr int kUpSum = (kWeights - 1) * BLOCK_N / 2;

// Where element `index` of a thread's part of C lies in its consumer's 64 rows.
struct Place {
  int row;
  int col;
};
__device__ __forceinline__ Place place_of(int index) {
  const int lane = int(threadIdx.x % 32);
  const int warp = int(threadIdx.x / 32 % 4);
  return {warp * 16 + fp32_row_of_lane(lane) + index / 2 % 2 * 8,
          index / 4 * 8 + lane % 4 * 2 + index % 2};
}

__device__ __forceinline__ void store_element(const GemmArgs& args, i64 index, float value) {
  if (HAS_BETA) value += args.beta * load_output(args.c, index);
  store_output(args.c, index, value);
}

// Two neighbours in a row, which begin on a multiple of their size.
__device__ __forceinline__ void store_pair(const GemmArgs& args, i64 index, float v0, float v1) {
  if (HAS_BETA) {
    v0 += args.beta * load_output(args.c, index);
    v1 += args.beta * load_output(args.c, index + 1);
  }
  if constexpr (kOutBytes == 2) {
    *reinterpret_cast<u32*>(static_cast<u16*>(args.c) + index) =
        u32(to_half_bits(v1)) << 16 | to_half_bits(v0);
  } else {
    *reinterpret_cast<float2*>(static_cast<float*>(args.c) + index) = float2{v0, v1};
  }
}

// Computes again the elements of `doubtful`, whose bit 0 is element `base` of the thread's part.
__device__ __forceinline__ void store_exact(const GemmArgs& args, u32 doubtful, int base, int row,
                                            int col) {
#pragma unroll 1
  for (; doubtful != 0; doubtful &= doubtful - 1) {
    const Place place = place_of(base + __ffs(int(doubtful)) - 1);
    const i64 at_row = row + place.row;
    const i64 at_col = col + place.col;
    const float first = exact_element(args, args.b, at_row, at_col);
    const float second = GATED ? exact_element(args, args.up, at_row, at_col) : 0.0f;
    store_element(args, at_row * args.ldc + at_col, finished(args, first, second));
  }
}

// `row` and `col` are the consumer's first. `lost`: no sum of this thread can be trusted.
__device__ __forceinline__ void store_tile(const Accumulators& acc, const GemmArgs& args, int row,
                                           int col, bool lost) {
  constexpr int kElements = BLOCK_N / 2;
  u32 doubtful[(kElements + 31) / 32] = {};
#pragma unroll
  for (int e = 0; e < kElements; e += 2) {
    const Place place = place_of(e);
    // One tile past 2^31 - 1 rows they turn negative.
    const bool exists = u32(row + place.row) < u32(args.m);
    const bool first = exists && u32(col + place.col) < u32(args.n);
    const bool second = exists && u32(col + place.col + 1) < u32(args.n);
    const float s0 = sum_of(acc, e);
    const float s1 = sum_of(acc, e + 1);
    const float up0 = sum_of(acc, e + kUpSum);
    const float up1 = sum_of(acc, e + 1 + kUpSum);
    const bool right0 = !lost && !is_doubtful(s0) && !is_doubtful(up0);
    const bool right1 = !lost && !is_doubtful(s1) && !is_doubtful(up1);
    const float v0 = finished(args, s0, up0);
    const float v1 = finished(args, s1, up1);
    const u32 wrong = u32(first && !right0) | u32(second && !right1) << 1;
    doubtful[e / 32] |= wrong << e % 32;
    const i64 index = i64(row + place.row) * args.ldc + col + place.col;
    if (ALIGN_C >= 2 * kOutBytes && second && right0 && right1) {
      store_pair(args, index, v0, v1);
    } else {
      if (first && right0) store_element(args, index, v0);
      if (second && right1) store_element(args, index + 1, v1);
    }
  }
#pragma unroll
  for (int word = 0; word < int(sizeof(doubtful) / 4); ++word) {
    store_exact(args, doubtful[word], word * 32, row, col);
  }
}

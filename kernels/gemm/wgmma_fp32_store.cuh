// The epilogue: C straight from registers. What the parts may not have summed up right is computed
// again, element by element.

// Where element `index` of a thread's sums lies in its consumer's 64 rows.
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

__device__ __forceinline__ void store_element(const GemmArgs& args, i64 index, float sum) {
  float value = args.alpha * sum;
  if (HAS_BETA) value += args.beta * load_output(args.c, index);
  store_output(args.c, index, value);
}

// Two neighbours in a row, which begin on a multiple of their size.
__device__ __forceinline__ void store_pair(const GemmArgs& args, i64 index, float s0, float s1) {
  float v0 = args.alpha * s0;
  float v1 = args.alpha * s1;
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

// Computes again the elements of `doubtful`, whose bit 0 is element `first` of the thread's sums.
__device__ __forceinline__ void store_exact(const GemmArgs& args, u32 doubtful, int first, int row,
                                            int col) {
#pragma unroll 1
  for (; doubtful != 0; doubtful &= doubtful - 1) {
    const Place place = place_of(first + __ffs(int(doubtful)) - 1);
    const i64 at_row = row + place.row;
    const i64 at_col = col + place.col;
    store_element(args, at_row * args.ldc + at_col, exact_element(args, args.b, at_row, at_col));
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
    const float s0 = acc.sum[e / kChainRegisters][e % kChainRegisters];
    const float s1 = acc.sum[e / kChainRegisters][e % kChainRegisters + 1];
    const bool right0 = !lost && !is_doubtful(s0);
    const bool right1 = !lost && !is_doubtful(s1);
    const u32 wrong = u32(first && !right0) | u32(second && !right1) << 1;
    doubtful[e / 32] |= wrong << e % 32;
    const i64 index = i64(row + place.row) * args.ldc + col + place.col;
    if (ALIGN_C >= 2 * kOutBytes && second && right0 && right1) {
      store_pair(args, index, s0, s1);
    } else {
      if (first && right0) store_element(args, index, s0);
      if (second && right1) store_element(args, index + 1, s1);
    }
  }
#pragma unroll
  for (int word = 0; word < int(sizeof(doubtful) / 4); ++word) {
    store_exact(args, doubtful[word], word * 32, row, col);
  }
}

// fp32 on tensor cores: an element is the sum of three bf16, hi + mid + lo, each the upper half of
// what the ones before it leave. A cut never overflows, and nothing is lost where |x| >= 2^-110:
// the last of 24 bits then weighs at least 2^-133, the least bf16. Of the nine products the three
// smallest (mid lo, lo mid, lo lo; below 2^-21 of the whole) are left out.

// Two elements next to each other in a fragment, the first in the lower half of each part.
struct Parts {
  u32 hi;
  u32 mid;
  u32 lo;
};

__device__ __forceinline__ u32 upper_halves(u32 first, u32 second) {
  return __byte_perm(first, second, 0x7632);
}

// What `bits` has beyond its upper half; exact, but NaN where `bits` is infinite or NaN.
__device__ __forceinline__ u32 beyond_half(u32 bits) {
  return __float_as_uint(__uint_as_float(bits) - __uint_as_float(bits & 0xffff0000));
}

// `lost` gathers what did not fit into three parts: see any_lost().
__device__ __forceinline__ Parts cut(u32 first, u32 second, u32& lost) {
  const u32 first_rest = beyond_half(first);
  const u32 second_rest = beyond_half(second);
  const u32 first_lo = beyond_half(first_rest);
  const u32 second_lo = beyond_half(second_rest);
  lost |= first_lo | second_lo;
  return {upper_halves(first, second), upper_halves(first_rest, second_rest),
          upper_halves(first_lo, second_lo)};
}

// Whether an element of all those cut was not the sum of its parts: tiny, infinite or NaN. What is
// multiplied with it must be computed by exact_element().
__device__ __forceinline__ bool any_lost(u32 lost) { return (lost & 0xffff) != 0; }

// Whether a sum of products of parts may be far from the sum of the products: an overflow on the
// way (inf - inf), or so small that parts of the products fell below the least fp32.
__device__ __forceinline__ bool is_doubtful(float sum) {
  constexpr float kSmall = 7.888609052210118e-31f;  // 2^-100
  const float size = fabsf(sum);
  return !(size < __uint_as_float(0x7f800000)) || (size < kSmall && size != 0.0f);
}

// One element of A and `weights` (B, or Up, which lies as B does) by fp32 multiply-adds over all of
// k, from global memory: slow, and right for every input. `row` and `col` lie inside C.
__device__ __forceinline__ float exact_element(const GemmArgs& args, const void* weights, i64 row,
                                               i64 col) {
  const float* a = static_cast<const float*>(args.a) + (A_K_MAJOR ? row * args.lda : row);
  const float* b = static_cast<const float*>(weights) + (B_K_MAJOR ? col * args.ldb : col);
  float sum = 0.0f;
#pragma unroll 1
  for (int k = 0; k < args.k; ++k) {
    sum = __fmaf_rn(*a, *b, sum);
    a += A_K_MAJOR ? 1 : args.lda;
    b += B_K_MAJOR ? 1 : args.ldb;
  }
  return sum;
}

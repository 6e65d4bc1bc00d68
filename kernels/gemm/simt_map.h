// Where simt's tiles hold their elements, for the device source and the host's tests alike: no
// include, fundamental types only.
//
// A tile has block_k rows of elements. An operand that is contiguous along k is transposed on the
// way in: a warp writes the same few elements of many rows, which would meet in one bank. So the
// element at byte x of row k lies at byte x ^ simt_swizzle(span, k) of it.
#ifndef AUTOTUNE_KERNELS_GEMM_SIMT_MAP_H_
#define AUTOTUNE_KERNELS_GEMM_SIMT_MAP_H_

#ifdef __CUDACC__
#define AT_BOTH __device__ __forceinline__
#else
#define AT_BOTH inline
#endif

// Bytes within which the XOR of an operand stays: the largest power of two, up to all banks, that
// divides its rows and the tiles in front of them. 16, without any XOR, where nothing is
// transposed.
AT_BOTH constexpr int simt_span(bool transposed, int row_bytes, int a_tile_bytes,
                                int b_tile_bytes) {
  const int bits = 128 | row_bytes | a_tile_bytes | b_tile_bytes;
  return transposed ? bits & -bits : 16;
}

// Moves chunks of 16 bytes, so that 8 neighbouring rows begin in different banks. The same every 8
// rows.
AT_BOTH constexpr int simt_swizzle(int span, int k) { return (k * span / 128 * 16) & (span - 16); }

// A thread reaches its elements by constant steps in bytes from one address. The whole spans of a
// step are added behind the XOR,
AT_BOTH constexpr int simt_whole_spans(int span, int step) { return step / span * span; }

// its rest goes below it. `first`: the address of the thread's first element as if nothing were
// moved, less than `unit` bytes into a span. Where `unit` is a power of two, it divides the rest,
// which then is one more XOR.
AT_BOTH constexpr unsigned simt_place(int span, int unit, unsigned first, int step, int swizzle) {
  const unsigned rest = unsigned(step % span);
  const bool apart = (unit & (unit - 1)) == 0;
  return apart ? first ^ unsigned(swizzle) ^ rest : (first + rest) ^ unsigned(swizzle);
}

#endif  // AUTOTUNE_KERNELS_GEMM_SIMT_MAP_H_

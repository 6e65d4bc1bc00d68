// Where wgmma_fp32's threads find and put elements in shared memory, for the device source and the
// host's tests alike: no include, fundamental types only. Offsets in bytes, into tiles under the
// copy engine's swizzle of 128 bytes and the matrix instruction's of 64.
#ifndef AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_MAP_H_
#define AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_MAP_H_

#ifdef __CUDACC__
#define AT_BOTH __device__ __forceinline__
#else
#define AT_BOTH inline
#endif

// The row, of the first 8 of a warp's 16, whose elements of A and C a lane holds. The instruction
// does not care which it is: in this order lanes that read A at once meet in no bank.
AT_BOTH int fp32_row_of_lane(int lane) { return (lane / 4 * 2 & 6) | lane / 16; }

// A lane's first element in A's tile, `first_row` being its warp's: k = 2 x (lane % 4).
AT_BOTH unsigned fp32_fragment(bool k_major, int first_row, int lane) {
  const int row = first_row + fp32_row_of_lane(lane);
  const int pair = lane % 4;
  if (k_major) return unsigned(row * 128 + ((pair / 2 ^ row % 8) << 4) + pair % 2 * 8);
  const int chunk = row % 32 / 4 ^ pair * 2;
  return unsigned(row / 32 * 32 * 128 + pair * 2 * 128 + (chunk << 4) + row % 4 * 4);
}

// From there, or from its address: the element `further` (0 or 1) along k from the first of the
// `half` (8 elements) of instruction `step`; `lower` for the row 8 further down.
AT_BOTH unsigned fp32_fragment_element(bool k_major, unsigned first, int step, int half, int lower,
                                       int further) {
  if (k_major) {
    return (first ^ unsigned(step * 4 + half * 2) << 4) + unsigned(lower * 8 * 128 + further * 4);
  }
  return (first ^ unsigned(lower * 2 + further) << 4) +
         unsigned((step * 16 + half * 8 + further) * 128);
}

// Of 8 rows of B, 1024 bytes of fp32, a lane cuts 32 bytes of one, the lanes of a quarter those of
// all 8, so that they meet in no bank: the first 16 bytes (the others at this ^ 16),
AT_BOTH unsigned fp32_rows_source(int lane) {
  return unsigned(lane % 8 * 128 + ((lane / 8 * 2 ^ lane % 8) << 4));
}
// and where the 16 bytes that become of them lie in the 512 of a part.
AT_BOTH unsigned fp32_rows_target(int lane) {
  return unsigned(lane % 8 * 64 + ((lane / 8 ^ lane % 8 / 2) << 4));
}

#endif  // AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_MAP_H_

// A's part of the matrix instruction: registers, cut by the warps that multiply.

// One k tile of the thread's rows: a thread holds, of rows r and r + 8 of its warp's 16 and of
// every 8 elements of k, the two at 2 x (lane % 4).
struct Fragments {
  u32 parts[kParts][kMultipliesK][4];
};

// Two elements that follow each other along k: the first two of 8 in half `half` of instruction
// `step`, `lower` for the row 8 further down. `first` is the address of the thread's first element.
__device__ __forceinline__ uint2 load_pair(u32 first, int step, int half, int lower) {
  const u32 at = fp32_fragment_element(A_K_MAJOR, first, step, half, lower, 0);
  uint2 pair;
  if constexpr (A_K_MAJOR) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];\n"
                 : "=r"(pair.x), "=r"(pair.y)
                 : "r"(at)
                 : "memory");
  } else {
    const u32 behind = fp32_fragment_element(A_K_MAJOR, first, step, half, lower, 1);
    asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(pair.x) : "r"(at) : "memory");
    asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(pair.y) : "r"(behind) : "memory");
  }
  return pair;
}

// Reads and cuts the thread's elements of A's tile.
__device__ __forceinline__ void load_fragments(Fragments& fragments, u32 first, u32& lost) {
#pragma unroll
  for (int step = 0; step < kMultipliesK; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint2 pair = load_pair(first, step, i / 2, i % 2);
      const Parts parts = cut(pair.x, pair.y, lost);
      fragments.parts[0][step][i] = parts.hi;
      fragments.parts[1][step][i] = parts.mid;
      fragments.parts[2][step][i] = parts.lo;
    }
  }
}

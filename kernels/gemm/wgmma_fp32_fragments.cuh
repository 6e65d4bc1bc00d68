// A's part of the matrix instruction: registers, cut by the warps that multiply.

// One k tile of the thread's rows: a thread holds, of rows r and r + 8 of its warp's 16 and of
// every 8 elements of k, the two at 2 x (lane % 4).
struct Fragments {
  u32 parts[kParts][kMultipliesK][4];
};

// The row of the first 8 that a lane of the warp multiplies, and stores. The instruction does not
// care which it is: this order keeps reads of A from meeting in a bank.
__device__ __forceinline__ int row_of_lane() {
  const int group = int(threadIdx.x % 32 / 4);
  return (group * 2 & 6) | group / 4;
}

// Byte offset in A's tile of the thread's first element, `first_row` being its warp's.
__device__ __forceinline__ u32 fragment_offset(int first_row) {
  const int row = row_of_lane();
  const int pair = int(threadIdx.x % 4);
  if constexpr (A_K_MAJOR) {
    return u32((first_row + row) * 128 + ((pair / 2 ^ row) << 4) + pair % 2 * 8);
  } else {
    const int m = first_row + row;
    const int chunk = m % kSlabElements / 4 ^ pair * 2;
    return u32(m / kSlabElements * TileA::kSlabBytes + pair * 2 * 128 + (chunk << 4) + m % 4 * 4);
  }
}

// Two elements that follow each other along k: the first two of 8 in half `half` of instruction
// `step`, `lower` for the row 8 further down. `first` is the address of the thread's first element.
__device__ __forceinline__ uint2 load_pair(u32 first, int step, int half, int lower) {
  uint2 pair;
  if constexpr (A_K_MAJOR) {
    const u32 address = (first ^ u32(step * 4 + half * 2) << 4) + lower * 8 * 128;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];\n"
                 : "=r"(pair.x), "=r"(pair.y)
                 : "r"(address)
                 : "memory");
  } else {
    const u32 row = first ^ u32(lower * 2) << 4;
    const u32 further = u32(step * 16 + half * 8) * 128;
    asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(pair.x) : "r"(row + further) : "memory");
    asm volatile("ld.shared.b32 %0, [%1];\n"
                 : "=r"(pair.y)
                 : "r"((row ^ 16) + further + 128)
                 : "memory");
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

// Split k through a workspace: the blocks that share a tile of C leave their sums there, which are
// added up in the same order always, by the last block to come, or by all of them where they run at
// once for certain. Else nobody waits for a block that may not run yet.
//
// Constant of the host twin: MARK_BYTES of the workspace lie before the sums. Whatever is added up
// has a mark of its own there, which counts the blocks that came in its lower half; it is 0 before
// a launch and behind it.

// Of the k tiles that parts share, as even as can be: the first `longer` parts have one more than
// `steps`.
struct PartRange {
  int first;
  int count;

  __device__ __forceinline__ PartRange(int part, int steps, int longer)
      : first(part * steps + min(part, longer)), count(steps + (part < longer)) {}
};

// By one thread, behind a barrier before which all of its block's sums were stored: adds `token` to
// the mark and returns all tokens so far. Behind another barrier, the last of `groups` blocks may
// read what all of them stored (past the L1, which may hold what was there before).
__device__ __forceinline__ u32 add_to_mark(u32* mark, u32 token, u32 groups) {
  u32 before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;\n"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(mark)), "r"(token)
               : "memory");
  const u32 tokens = before + token;
  if ((tokens & 0xffff) == groups) *mark = 0;
  return tokens;
}

// By one thread, behind such a barrier: waits until all of `groups` blocks have come. Behind
// another barrier they may all read what all of them stored.
__device__ __forceinline__ void meet_at_mark(u32* mark, u32 groups) {
  const auto there = __cvta_generic_to_global(mark);
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;\n" ::"l"(there) : "memory");
  u32 tokens;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n" : "=r"(tokens) : "l"(there) : "memory");
  } while ((tokens & 0xffff) != groups);
  // The upper half counts those who have seen it. The last of them clears the mark.
  if (atomicAdd(mark, 0x10000) >> 16 == groups - 1) *mark = 0;
}

__device__ __forceinline__ void add_piece(float* sum, float4 piece) {
  sum[0] += piece.x;
  sum[1] += piece.y;
  sum[2] += piece.z;
  sum[3] += piece.w;
}

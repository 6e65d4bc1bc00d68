// Rows that the copy engine cannot load, for they do not begin on 16 bytes: before all else the
// blocks of the grid copy them, all together, to rows of the workspace that do, and meet.
//
// Constant of the host twin: PACKED, whether an operand is copied.

#if PACKED
// This warp's share of an operand whose rows begin on kAlign bytes: strip by strip of its rows.
template <int kAlign>
__device__ __forceinline__ void pack(const PackedOperand& operand) {
  constexpr int kPiece = 16;  // bytes of a lane
  constexpr int kAtOnce = PackedOperand::kStripBytes / (32 * kPiece);
  constexpr u32 kWarps = THREADS / 32;
  const u32 strips = u32(operand.rows) * u32(operand.strips);
  const char* from = static_cast<const char*>(operand.from);
  const char* end = from + (operand.rows - 1) * operand.from_pitch + operand.row_bytes;
#pragma unroll 1
  for (u32 i = blockIdx.x * kWarps + threadIdx.x / 32; i < strips; i += gridDim.x * kWarps) {
    const u32 row = divided(i, operand.of_strips);
    const i64 first =
        i64(i - row * u32(operand.strips)) * PackedOperand::kStripBytes + threadIdx.x % 32 * kPiece;
    const char* source = from + row * operand.from_pitch + first;
    char* target = static_cast<char*>(operand.to) + row * operand.to_pitch + first;
    const i64 left = operand.row_bytes - first;
    const auto valid = [left](int piece) {
      return int(min(max(left - piece * (32 * kPiece), i64(0)), i64(kPiece)));
    };
    RaggedChunk<kAlign> chunks[kAtOnce];
    bool missing = false;
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      missing |= chunks[p].read(source + p * (32 * kPiece), valid(p), end);
    }
    if (missing) {
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) {
        const char* piece = source + p * (32 * kPiece);
        if (valid(p) > 0 && end - piece <= 2 * kPiece) chunks[p].read_last(piece, end);
      }
    }
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      if (valid(p) == 0) continue;
      *reinterpret_cast<uint4*>(target + p * (32 * kPiece)) =
          chunks[p].chunk(source + p * (32 * kPiece), valid(p));
    }
  }
}

// By all threads of all blocks, which wait for each other here.
__device__ __forceinline__ void pack_operands(const PackArgs& args) {
  if constexpr (ALIGN_A < 16) pack<ALIGN_A>(args.a);
  if constexpr (ALIGN_B < 16) pack<ALIGN_B>(args.b);
  fence_async_proxy_global();  // the copy engine reads what threads wrote
  __syncthreads();
  if (threadIdx.x == 0) {
    meet_at_mark(args.mark, gridDim.x);
    fence_async_proxy_global();
  }
}
#endif

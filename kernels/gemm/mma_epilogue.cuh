// The way of C from a warp's registers into global memory.

// finished() acc + beta * C for one 16-row strip of the warp, into the warp's buffer.
__device__ __forceinline__ void stage_strip(WarpBuffer& buffer, const float (&acc)[kTilesN][4],
                                            const GemmArgs& args, i64 row0, int rows_left, i64 col0,
                                            int cols_left) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < kTilesC; ++j) {
    const float(&second)[4] = acc[j + kTilesN - kTilesC];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + half * 8;
      const int col = j * 8 + (lane % 4) * 2;
      float v[2] = {finished(args, acc[j][half * 2], second[half * 2]),
                    finished(args, acc[j][half * 2 + 1], second[half * 2 + 1])};
      if (HAS_BETA && row < rows_left) {
        const i64 index = (row0 + row) * args.ldc + col0 + col;
        if (col < cols_left) v[0] += args.beta * load_output(args.c, index);
        if (col + 1 < cols_left) v[1] += args.beta * load_output(args.c, index + 1);
      }
      u8* target = buffer.rows[row] + col * kOutBytes;
      if constexpr (kOutBytes == 2) {
        *reinterpret_cast<u32*>(target) = u32(to_half_bits(v[0])) | u32(to_half_bits(v[1])) << 16;
      } else {
        *reinterpret_cast<float2*>(target) = float2{v[0], v[1]};
      }
    }
  }
}

__device__ __forceinline__ bool any_doubtful(const float (&acc)[kTilesN][4]) {
  bool any = false;
#pragma unroll
  for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
    for (int r = 0; r < 4; ++r) any |= is_doubtful(acc[j][r]);
  }
  return any;
}

// This lane's elements of a strip once more, by FFMA, over what stage_strip() left in the buffer.
__device__ __forceinline__ void stage_exact(WarpBuffer& buffer, const GemmArgs& args, i64 row0,
                                            int rows_left, i64 col0, int cols_left) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int i = 0; i < kTilesC * 4; ++i) {
    const int row = lane / 4 + (i / 2 % 2) * 8;
    const int col = i / 4 * 8 + (lane % 4) * 2 + i % 2;
    if (row >= rows_left || col >= cols_left) continue;
    const float first = exact_element(args, args.b, row0 + row, col0 + col);
    const float second = GATED ? exact_element(args, args.up, row0 + row, col0 + col) : 0.0f;
    float v = finished(args, first, second);
    if (HAS_BETA) v += args.beta * load_output(args.c, (row0 + row) * args.ldc + col0 + col);
    *reinterpret_cast<float*>(buffer.rows[row] + col * kOutBytes) = v;
  }
}

// The warp's buffer to C, in pieces as wide as C's rows are aligned, beside each other in
// neighbouring lanes; ragged ends by element.
__device__ __forceinline__ void store_strip(const WarpBuffer& buffer, const GemmArgs& args,
                                            i64 row0, int rows_left, i64 col0, int cols_left) {
  constexpr int kPieces = kWarpN / kPieceElements;  // per row
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int p = 0; p < 16 * kPieces; p += 32) {
    const int piece = p + lane;
    const int row = piece / kPieces;
    const int col = (piece % kPieces) * kPieceElements;
    if ((16 * kPieces % 32 == 0 || row < 16) && row < rows_left && col < cols_left) {
      const u8* source = buffer.rows[row] + col * kOutBytes;
      char* target =
          static_cast<char*>(args.c) + ((row0 + row) * args.ldc + col0 + col) * kOutBytes;
      store_piece(target, source, cols_left - col);
    }
  }
}

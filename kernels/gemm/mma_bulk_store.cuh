// The sums of a tile: laid out row by row, added up over the parts, and stored.

__device__ __forceinline__ void lay_out(float (&sums)[BLOCK_M][kSumPitch],
                                        const Accumulators& acc) {
  const int warp = int(threadIdx.x / 32);
#pragma unroll
  for (int i = 0; i < kTilesM; ++i) {
#pragma unroll
    for (int j = 0; j < kTilesN; ++j) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int row =
            warp / WARPS_N * kWarpM + row_of_group<kClassesA>(i * 2 + r / 2, lane() / 4);
        const int col =
            warp % WARPS_N * kWarpN + row_of_group<kClassesB>(j, lane() % 4 * 2 + r % 2);
        sums[row][col] = acc[i][j][r];
      }
    }
  }
}

constexpr int kRowPieces = BLOCK_N / 4;  // float4 of a row

// Rows of a part's share of the tile that C has.
__device__ __forceinline__ int share_rows(const GemmArgs& args, const TilePlace& tile, int part) {
  return min(max(args.m - (tile.row + part * kShareRows), 0), kShareRows);
}

#if SPLIT_K > 1
// Gives every other part what this one has of its rows.
__device__ __forceinline__ void give_rows(SharedMemory& shared, const GemmArgs& args,
                                          const TilePlace& tile, int part) {
  if (threadIdx.x == 0) {
    const int bytes = share_rows(args, tile, part) * BLOCK_N * 4 * (SPLIT_K - 1);
    barrier_expect(shared_address(&shared.landed), u32(bytes));
  }
#pragma unroll
  for (int next = 1; next < SPLIT_K; ++next) {
    const int other = (part + next) % SPLIT_K;
    const u32 landed = cluster_address(shared_address(&shared.landed), other);
    float(&room)[kShareRows][BLOCK_N] = shared.given[part < other ? part : part - 1];
    const u32 there = cluster_address(shared_address(&room), other);
    const int pieces = share_rows(args, tile, other) * kRowPieces;
    for (int i = threadIdx.x; i < pieces; i += THREADS) {
      const float* from =
          &shared.ring.sums[other * kShareRows + i / kRowPieces][i % kRowPieces * 4];
      give_floats(there + i * 16, *reinterpret_cast<const float4*>(from), landed);
    }
  }
}

// This part's share of the sum over all, in the order of their ranks.
__device__ __forceinline__ float4 sum_of_parts(const SharedMemory& shared, int part, int row,
                                               int col) {
  float sum[4] = {};
#pragma unroll
  for (int p = 0; p < SPLIT_K; ++p) {
    const float* from = p == part ? &shared.ring.sums[part * kShareRows + row][col]
                                  : &shared.given[p < part ? p : p - 1][row][col];
    add_piece(sum, *reinterpret_cast<const float4*>(from));
  }
  return float4{sum[0], sum[1], sum[2], sum[3]};
}
#else
__device__ __forceinline__ float4 sum_of_parts(const SharedMemory& shared, int, int row, int col) {
  return *reinterpret_cast<const float4*>(&shared.ring.sums[row][col]);
}
#endif

// Four neighbours of a row of C, in pieces as wide as its rows are aligned.
__device__ __forceinline__ void store_four(const GemmArgs& args, int row, int col, float4 sum) {
  const i64 at = row * args.ldc + col;
  const int left = min(args.n - col, 4);
  float v[4] = {sum.x * args.alpha, sum.y * args.alpha, sum.z * args.alpha, sum.w * args.alpha};
  typedef VectorOf<kOutBytes>::Type Element;
  constexpr int kWidth = 4 * kOutBytes;
  __align__(16) Element four[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (HAS_BETA && e < left) v[e] += args.beta * load_output(args.c, at + e);
    if constexpr (kOutBytes == 2) {
      four[e] = to_half_bits(v[e]);
    } else {
      four[e] = __float_as_uint(v[e]);
    }
  }
  Element* target = static_cast<Element*>(args.c) + at;
  constexpr int kPiece = ALIGN_C < kWidth ? ALIGN_C : kWidth;
  typedef VectorOf<kPiece>::Type Piece;
#pragma unroll
  for (int e = 0; e < 4; e += kPiece / kOutBytes) {
    if (e + kPiece / kOutBytes <= left) {
      *reinterpret_cast<Piece*>(target + e) = *reinterpret_cast<const Piece*>(four + e);
    } else {
#pragma unroll
      for (int each = e; each < e + kPiece / kOutBytes; ++each) {
        if (each < left) target[each] = four[each];
      }
    }
  }
}

// This part's share of the tile, once all that it is given has come.
__device__ __forceinline__ void store_share(SharedMemory& shared, const GemmArgs& args,
                                            const TilePlace& tile, int part, u32 parity) {
#if SPLIT_K > 1
  barrier_wait(shared_address(&shared.landed), parity);
#endif
  const int pieces = share_rows(args, tile, part) * kRowPieces;
  const int first = tile.row + part * kShareRows;
  for (int i = threadIdx.x; i < pieces; i += THREADS) {
    const int row = i / kRowPieces;
    const int col = i % kRowPieces * 4;
    if (tile.col + col >= args.n) continue;
    store_four(args, first + row, tile.col + col, sum_of_parts(shared, part, row, col));
  }
}

// The sums of a tile: laid out row by row, added up over the parts, and stored.

// The greatest power of two that divides both.
__device__ constexpr int common_power(int a, int b) { return (a | b) & -(a | b); }

// A lane has two columns of each group of eight. Those of groups whose classes follow each other
// are neighbours; where the warp has all classes, both columns' are.
constexpr int kNeighbours = common_power(kClassesB, kTilesN);
constexpr int kColumnsOfRun = kNeighbours == kClassesB ? 2 : 1;
constexpr int kRun = kColumnsOfRun * kNeighbours;

template <int kCount>
__device__ __forceinline__ void put_neighbours(float* target, const float (&v)[kCount]) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int e = 0; e < kCount; e += 4) {
      *reinterpret_cast<float4*>(target + e) = float4{v[e], v[e + 1], v[e + 2], v[e + 3]};
    }
  } else if constexpr (kCount == 2) {
    *reinterpret_cast<float2*>(target) = float2{v[0], v[1]};
  } else {
    *target = v[0];
  }
}

__device__ __forceinline__ void lay_out(SharedMemory& shared, const Accumulators (&acc)[kChains]) {
  const WarpPlace place;
#pragma unroll
  for (int i = 0; i < 2 * kTilesM; ++i) {
    const int row = row_of_group<kClassesA>(place.group_m + i, lane() / 4);
#pragma unroll
    for (int j = 0; j < kTilesN; j += kNeighbours) {
#pragma unroll
      for (int column = 0; column < 2; column += kColumnsOfRun) {
        float run[kRun];
#pragma unroll
        for (int e = 0; e < kRun; ++e) {
          const int r = i % 2 * 2 + column + e / kNeighbours;
          run[e] = acc[0][i / 2][j + e % kNeighbours][r];
          if constexpr (kChains == 2) run[e] += acc[1][i / 2][j + e % kNeighbours][r];
        }
        const int col = row_of_group<kClassesB>(place.group_n + j, lane() % 4 * 2 + column);
        put_neighbours(&shared.ring.sums[place.k][row][col], run);
      }
    }
  }
}

// One element of a row, or four neighbours.
template <int kCount>
__device__ __forceinline__ void add_from(float (&sum)[kCount], const float* from) {
  if constexpr (kCount == 4) {
    add_piece(sum, *reinterpret_cast<const float4*>(from));
  } else {
    sum[0] += *from;
  }
}

// What this block has of them, and what its part of the rows is given of them by the others, in the
// order of their ranks.
template <int kCount>
__device__ __forceinline__ void add_own(float (&sum)[kCount], const SharedMemory& shared, int row,
                                        int col) {
#pragma unroll
  for (int k = 0; k < WARPS_K; ++k) add_from(sum, &shared.ring.sums[k][row][col]);
}

template <int kCount>
__device__ __forceinline__ void add_parts(float (&sum)[kCount], const SharedMemory& shared,
                                          int part, int row, int col) {
#pragma unroll
  for (int p = 0; p < SPLIT_K; ++p) {
    if (p == part) {
      add_own(sum, shared, part * kShareRows + row, col);
    } else {
#if SPLIT_K > 1
      add_from(sum, &shared.given[p < part ? p : p - 1][row][col]);
#endif
    }
  }
}

constexpr int kRowPieces = BLOCK_N / 4;  // float4 of a row
constexpr int kSharePieces = kShareRows * kRowPieces;

// Rows of a part's share of the tile that C has.
__device__ __forceinline__ int share_rows(const GemmArgs& args, const TilePlace& tile, int part) {
  const i64 left = i64(args.m) - tile.row - part * kShareRows;
  return int(min(max(left, i64(0)), i64(kShareRows)));
}

#if SPLIT_K > 1
// Gives every other part what this one has of its rows.
__device__ __forceinline__ void give_rows(SharedMemory& shared, const GemmArgs& args,
                                          const TilePlace& tile, int part) {
  if (threadIdx.x == 0) {
    const int bytes = share_rows(args, tile, part) * BLOCK_N * 4 * (SPLIT_K - 1);
    barrier_expect(shared_address(&shared.landed), u32(bytes));
  }
  const u32 landed = shared_address(&shared.landed);
#pragma unroll 1
  for (int i = threadIdx.x; i < (SPLIT_K - 1) * kSharePieces; i += THREADS) {
    const int other = (part + 1 + i / kSharePieces) % SPLIT_K;
    const int piece = i % kSharePieces;
    if (piece / kRowPieces >= share_rows(args, tile, other)) continue;
    const u32 room = shared_address(&shared.given[part < other ? part : part - 1]);
    float sum[4] = {};
    add_own(sum, shared, other * kShareRows + piece / kRowPieces, piece % kRowPieces * 4);
    give_floats(cluster_address(room + piece * 16, other), float4{sum[0], sum[1], sum[2], sum[3]},
                cluster_address(landed, other));
  }
}
#endif

// Stores those of four neighbours of a row of C, of which the first is at `col`, from `first` on
// and before `count`: all four of them in one piece.
__device__ __forceinline__ void store_neighbours(const GemmArgs& args, int row, int col,
                                                 float (&v)[4], int first, int count) {
  typedef VectorOf<kOutBytes>::Type Element;
  Element* target = static_cast<Element*>(args.c) + row * args.ldc + col;
  __align__(16) Element four[4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const bool there = e >= first && e < count;
    v[e] *= args.alpha;
    if (HAS_BETA && there) v[e] += args.beta * load_output(target, e);
    if constexpr (kOutBytes == 2) {
      four[e] = to_half_bits(v[e]);
    } else {
      four[e] = __float_as_uint(v[e]);
    }
  }
  if (first == 0 && count == 4) {
    typedef VectorOf<4 * kOutBytes>::Type Piece;
    *reinterpret_cast<Piece*>(target) = *reinterpret_cast<const Piece*>(four);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (e >= first && e < count) target[e] = four[e];
  }
}

// This part's share of the tile, once all that it is given has come: by fours, which begin where
// C's rows have a piece of so many bytes begin.
__device__ __forceinline__ void store_share(SharedMemory& shared, const GemmArgs& args,
                                            const TilePlace& tile, int part, u32 parity) {
  constexpr bool kAligned = ALIGN_C >= 4 * kOutBytes;
  // Of a row; where it begins within one, the first reaches back and one more is needed.
  constexpr int kFours = kAligned ? kRowPieces : kRowPieces + 1;
#if SPLIT_K > 1
  barrier_wait(shared_address(&shared.landed), parity);
#endif
  const int fours = share_rows(args, tile, part) * kFours;
  const int cols = min(args.n - tile.col, BLOCK_N);
#pragma unroll 1
  for (int i = threadIdx.x; i < fours; i += THREADS) {
    const int row = i / kFours;
    const int row_of_c = tile.row + part * kShareRows + row;
    int col = i % kFours * 4;
    float v[4] = {};
    if constexpr (kAligned) {
      add_parts(v, shared, part, row, col);
    } else {
      col -= int(u32(row_of_c) * u32(args.ldc) + u32(tile.col)) & 3;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float sum[1] = {};
        if (u32(col + e) < u32(BLOCK_N)) add_parts(sum, shared, part, row, col + e);
        v[e] = sum[0];
      }
    }
    store_neighbours(args, row_of_c, tile.col + col, v, max(-col, 0), min(cols - col, 4));
  }
}

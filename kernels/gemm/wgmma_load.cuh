// The producer: one thread that feeds the ring of stages through the tensor copy engine.

// Slabs of an operand that is contiguous along m or n that hold rows or columns of the matrix.
template <typename Tile>
__device__ __forceinline__ int loaded_slabs(int first, int extent) {
  const int of_tile = min(extent - first, Tile::kSlabs * kSlabElements);
  return max((of_tile + kSlabElements - 1) / kSlabElements, 0);
}

// Bytes of an operand's tile that arrive for one stage. Rows that are not loaded are whatever they
// were, and so are the product's rows or columns, which nobody stores. A tile of rows along k that
// lies outside altogether is loaded like the first.
template <typename Tile, bool kKMajor, int kExtent>
__device__ __forceinline__ u32 tile_bytes(int first, int extent) {
  if constexpr (!kKMajor) return u32(loaded_slabs<Tile>(first, extent)) * Tile::kSlabBytes;
  const int rows = at_edge(first, extent, kExtent) ? extent - first : extent;
  return u32(loaded_rows(rows, kExtent)) * 128 * Tile::kSlabs;
}

// Tiles of few rows or columns are for matrices of few rows or columns, whose other side's operand
// streams through the L2 once. What all blocks read, and C until its reader comes, is to outlast
// it.
constexpr bool kTellsL2 = BLOCK_M * CLUSTER_M <= 64 || BLOCK_N * CLUSTER_N <= 64;

struct L2Policies {
  L2Policy a = L2Policy::kNormal;
  L2Policy b = L2Policy::kNormal;
};

__device__ __forceinline__ L2Policies l2_policies(const GemmArgs& gemm) {
  constexpr int kFew = 2;  // tiles that read the same lines at about the same time
  const bool a_streams = gemm.tiles_n <= kFew;
  const bool b_streams = gemm.tiles_m <= kFew;
  if (a_streams == b_streams) return {};
  return a_streams ? L2Policies{L2Policy::kEvictFirst, L2Policy::kEvictLast}
                   : L2Policies{L2Policy::kEvictLast, L2Policy::kEvictFirst};
}

// Starts the loads of the k tile that comes at `step` of a tile of C into a stage whose readers are
// done. `kAlone`: all that this block needs itself; else the blocks of the cluster that share a
// tile of an operand load it for each other, whose turn it is. `kHinted`: with the policies.
template <bool kAlone, bool kHinted>
__device__ __forceinline__ void load_stage(const WgmmaArgs& args, SharedMemory& shared,
                                           ClusterPlace place, u32 at, const Unit& unit, int step,
                                           u32 turn, L2Policies policies = {}) {
  constexpr bool kSharesA = CLUSTER_N > 1 && !kAlone;
  constexpr bool kSharesB = CLUSTER_M > 1 && !kAlone;
  // A's tile is needed by the blocks of this row of the cluster, B's by those of this column.
  u16 row_blocks = 0;
  u16 column_blocks = 0;
#pragma unroll
  for (int n = 0; n < CLUSTER_N; ++n) row_blocks |= u16(1 << (n * CLUSTER_M + place.m));
#pragma unroll
  for (int m = 0; m < CLUSTER_M; ++m) column_blocks |= u16(1 << (place.n * CLUSTER_M + m));

  const u32 full = shared_address(&shared.full[at]);
  const int m = args.gemm.m;
  const int n = args.gemm.n;
  barrier_expect(full, tile_bytes<TileA, A_K_MAJOR, BLOCK_M>(unit.row, m) +
                           kWeights * tile_bytes<WeightsTile, B_K_MAJOR, BLOCK_N>(unit.col, n));
  Stage& stage = shared.stages[at];
  const int turned = unit.start + step;
  const int k = (unit.first + (turned < unit.count ? turned : turned - unit.count)) * BLOCK_K;
  if (!kSharesA || turn % CLUSTER_N == u32(place.n)) {
    load_operand<TileA, A_K_MAJOR, kSharesA, TileA::kSlabBytes, kHinted>(
        shared_address(&stage.a),
        A_K_MAJOR && at_edge(unit.row, m, BLOCK_M) ? args.map_a_edge : args.map_a, unit.row, k,
        full, A_K_MAJOR ? TileA::kSlabs : loaded_slabs<TileA>(unit.row, m), row_blocks, policies.a);
  }
  if (!kSharesB || turn % CLUSTER_M == u32(place.m)) {
    const u32 tile_b = shared_address(&stage.b);
    const bool edge = B_K_MAJOR && at_edge(unit.col, n, BLOCK_N);
    const int slabs = B_K_MAJOR ? WeightsTile::kSlabs : loaded_slabs<WeightsTile>(unit.col, n);
    load_operand<WeightsTile, B_K_MAJOR, kSharesB, TileB::kSlabBytes, kHinted>(
        tile_b, edge ? args.map_b_edge : args.map_b, unit.col, k, full, slabs, column_blocks,
        policies.b);
    if constexpr (GATED) {
      const auto& gated = static_cast<const GatedWgmmaArgs&>(args);
      load_operand<WeightsTile, B_K_MAJOR, kSharesB, TileB::kSlabBytes, kHinted>(
          tile_b + TileB::offset(BLOCK_N, 0), edge ? gated.map_up_edge : gated.map_up, unit.col, k,
          full, slabs, column_blocks, policies.b);
    }
  }
}

// The first loads of the block, in one straight line behind the kernel's entry: at cold caches the
// instructions come from DRAM as well, and every jump waits for them. They need the barriers of
// their own stages only, and no other block of the cluster; what the L2 is told can wait.

__device__ __forceinline__ void open_ring(const WgmmaArgs& args, SharedMemory& shared,
                                          ClusterPlace place, int k_tiles) {
  const Unit unit = unit_of(first_unit(args), args, place, k_tiles);
#pragma unroll
  for (int i = 0; i < kOpening; ++i) {
    if (i < unit.count) {
      load_stage<true, false>(args, shared, place, u32(i), unit, i, 0);
    }
  }
}

// All loads but those that opened the ring.
__device__ __forceinline__ void produce(const WgmmaArgs& args, SharedMemory& shared,
                                        ClusterPlace place, u32 units, int k_tiles) {
  int step = min(unit_of(first_unit(args), args, place, k_tiles).count, kOpening);
  const L2Policies policies = l2_policies(args.gemm);
  RingPosition at{0, 1};  // the first pass waits for nobody
  at.advance(u32(step));
  u32 turn = 0;  // goes on from tile to tile: these may have one k tile each
  for (u32 id = first_unit(args); id < units; id += next_unit()) {
    const Unit unit = unit_of(id, args, place, k_tiles);
    for (; step < unit.count; ++step) {
      barrier_wait(shared_address(&shared.empty[at.stage]), at.parity);
      load_stage<false, kTellsL2>(args, shared, place, at.stage, unit, step, turn++, policies);
      at.advance();
    }
    step = 0;
  }
  if constexpr (kCluster > 1) {  // stay until the others have said their last to these barriers
    for (int s = 0; s < STAGES; ++s) {
      barrier_wait(shared_address(&shared.empty[at.stage]), at.parity);
      at.advance();
    }
  }
}

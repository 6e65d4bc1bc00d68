// Which weights each thread of gemv holds, for the device source and the host's tests alike: no
// include, fundamental types only.
//
// A thread's share of a step is a chunk: as many elements of one column along k as 16 bytes hold.
// `lanes_k` neighbouring lanes hold chunks of the same columns, one of each tile; the lanes of a
// warp as many columns of a tile as there are such groups. Four lanes are the fragment of the
// matrix instructions but for the order of k, which a sum does not mind as long as A is read in the
// same one.
//
// What is contiguous, a chunk or a row of a thread's columns, is read in pieces, as wide as rows
// are aligned. Those that lanes read at once are neighbours, so a chunk of several pieces is not in
// one place: its pieces are as far apart as those of all lanes together are wide.
#ifndef AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_
#define AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

#ifdef __CUDACC__
#define AT_BOTH __device__ __forceinline__
#else
#define AT_BOTH inline
#endif

struct GemvMap {
  bool k_major;  // columns are contiguous along k; else rows of k along n
  int warps_n;
  int warps_k;
  int lanes_k;  // a power of two: 4 at least where columns are contiguous along k, else at most
  int tiles;    // of 32 / lanes_k columns, per warp
  int depth;    // chunks of each of its columns that a thread loads per pass over block_k
  int pieces;   // that a chunk is read in, or else each of its rows of `tiles` columns
};

// Steps of k: the chunks of a group of lanes. A warp does `depth` of them in each pass.
AT_BOTH int gemv_first_step(const GemvMap& map, int warp) { return warp / map.warps_n * map.depth; }
AT_BOTH int gemv_pass_steps(const GemvMap& map) { return map.warps_k * map.depth; }

// Index along k of a lane's chunk of a step, where columns are not contiguous along k.
AT_BOTH int gemv_chunk(const GemvMap& map, int step, int lane) {
  return step * map.lanes_k + lane % map.lanes_k;
}

// Index along k of a piece of a lane's chunk, in pieces, where they are.
AT_BOTH int gemv_piece(const GemvMap& map, int step, int lane, int piece) {
  return (step * map.pieces + piece) * map.lanes_k + lane % map.lanes_k;
}

// Column in the block of the `index`-th column (that of the group of lanes `index`) of a tile.
// Where rows of k are contiguous along n, the columns of a piece are neighbours, and the pieces of
// all groups.
AT_BOTH int gemv_column(const GemvMap& map, int warp, int tile, int index) {
  const int groups = 32 / map.lanes_k;
  const int first = warp % map.warps_n * map.tiles * groups;
  const int wide = map.k_major ? 1 : map.tiles / map.pieces;
  return first + (tile / wide * groups + index) * wide + tile % wide;
}

#endif  // AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

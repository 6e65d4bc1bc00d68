// Which weights each thread of gemv holds, for the device source and the host's tests alike: no
// include, fundamental types only.
//
// A thread's piece of work is a chunk: 16 bytes of one column along k. `lanes_k` neighbouring lanes
// hold as many neighbouring chunks of the same columns, one of each tile; the lanes of a warp as
// many columns of a tile as there are such groups. Four lanes are the fragment of the matrix
// instructions but for the order of k, which a sum does not mind as long as A is read in the same
// one.
#ifndef AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_
#define AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

#ifdef __CUDACC__
#define AT_BOTH __device__ __forceinline__
#else
#define AT_BOTH inline
#endif

struct GemvMap {
  bool k_major;  // a chunk lies in one piece; else its elements lie in rows of k
  int warps_n;
  int warps_k;
  int lanes_k;  // 4, 8, 16 or 32; 4 where B is not contiguous along k
  int tiles;    // of 32 / lanes_k columns, per warp
  int depth;    // chunks of each of its columns that a thread loads per pass over block_k
};

// Steps of k: the chunks of a group of lanes. A warp does `depth` of them in each pass.
AT_BOTH int gemv_first_step(const GemvMap& map, int warp) { return warp / map.warps_n * map.depth; }
AT_BOTH int gemv_pass_steps(const GemvMap& map) { return map.warps_k * map.depth; }

// Index along k of a lane's chunk of a step.
AT_BOTH int gemv_chunk(const GemvMap& map, int step, int lane) {
  return step * map.lanes_k + lane % map.lanes_k;
}

// Column in the block of the `index`-th column (that of the group of lanes `index`) of a tile.
// Where rows of k are contiguous along n, a group's columns are neighbours, so that one load brings
// them all.
AT_BOTH int gemv_column(const GemvMap& map, int warp, int tile, int index) {
  const int groups = 32 / map.lanes_k;
  const int first = warp % map.warps_n * map.tiles * groups;
  return first + (map.k_major ? tile * groups + index : index * map.tiles + tile);
}

#endif  // AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

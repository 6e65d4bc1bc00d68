// Which weights each thread of gemv holds, for the device source and the host's tests alike: no
// include, fundamental types only.
//
// A thread's piece of work is a chunk: 16 bytes of one column along k. The four lanes of a quad
// hold four neighbouring chunks of the same columns, the eight quads of a warp eight columns of
// each tile. That is the fragment of the matrix instructions but for the order of k, which a sum
// does not mind as long as A is read in the same one.
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
  int tiles;  // of 8 columns, per warp
  int depth;  // chunks of each of its columns that a thread loads per pass over block_k
};

// Steps of k: 64 bytes, the chunks of a quad. A warp does `depth` of them in each pass.
AT_BOTH int gemv_first_step(const GemvMap& map, int warp) { return warp / map.warps_n * map.depth; }
AT_BOTH int gemv_pass_steps(const GemvMap& map) { return map.warps_k * map.depth; }

// Index along k of a lane's chunk of a step.
AT_BOTH int gemv_chunk(int step, int lane) { return step * 4 + lane % 4; }

// Column in the block of the `index`-th column (0..7, that of quad `index`) of a tile. Where rows
// of k are contiguous along n, a quad's columns are neighbours, so that one load brings them all.
AT_BOTH int gemv_column(const GemvMap& map, int warp, int tile, int index) {
  const int first = warp % map.warps_n * map.tiles * 8;
  return first + (map.k_major ? tile * 8 + index : index * map.tiles + tile);
}

#endif  // AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

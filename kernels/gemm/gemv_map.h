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
  int depth;  // chunks that a thread loads of each of its columns per pass over block_k
};

// Chunks along k that a step of all four lanes covers: 64 bytes.
constexpr int kGemvStepChunks = 4;

// Index along k of the chunk that a lane loads as the `step`-th of the first pass.
AT_BOTH int gemv_chunk(const GemvMap& map, int warp, int lane, int step) {
  return (warp / map.warps_n * map.depth + step) * kGemvStepChunks + lane % 4;
}

// Chunks between the same step of one pass and the next.
AT_BOTH int gemv_pass_chunks(const GemvMap& map) {
  return map.warps_k * map.depth * kGemvStepChunks;
}

// Column in the block of the `index`-th column (0..7, that of quad `index`) of a tile. Where rows
// of k are contiguous along n, a quad's columns are neighbours, so that one load brings them all.
AT_BOTH int gemv_column(const GemvMap& map, int warp, int tile, int index) {
  const int first = warp % map.warps_n * map.tiles * 8;
  return first + (map.k_major ? tile * 8 + index : index * map.tiles + tile);
}

#endif  // AUTOTUNE_KERNELS_GEMM_GEMV_MAP_H_

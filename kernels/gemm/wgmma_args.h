// The launch argument of the wgmma kernel, read by its host twin and by its device source alike.
#ifndef AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_

// A CUtensorMap: what the copy engine knows of a matrix and of the box that one copy moves.
struct alignas(64) TensorMapBytes {
  unsigned long long words[16];
};

#ifdef __CUDACC__
#define AT_BOTH __device__ __forceinline__
#else
#define AT_BOTH inline
#endif

// Rows of an operand that are loaded into a tile's `tile_rows` where the matrix has `rows` more: no
// others, which would take the copy engine longer than those that there are (NOTES.md), but for the
// eights after which the swizzle repeats.
AT_BOTH int loaded_rows(int rows, int tile_rows) {
  return ((rows < tile_rows ? rows : tile_rows) + 7) / 8 * 8;
}

// Whether the tile that begins at row `first` of an operand is the last of several, and not whole.
AT_BOTH bool at_edge(int first, int rows, int tile_rows) {
  return first > 0 && first < rows && rows - first < tile_rows;
}

#undef AT_BOTH

struct WgmmaArgs {
  TensorMapBytes map_a;
  TensorMapBytes map_b;
  TensorMapBytes map_c;
  GemmArgs gemm;  // tiles_m and tiles_n count the tiles of a cluster
  SplitArgs split;
  // A's and B's for the last tile along m and n, where it has fewer rows than the first. An operand
  // that is not contiguous along k needs none: slabs of its tile that lie outside are not loaded.
  TensorMapBytes map_a_edge;
  TensorMapBytes map_b_edge;
  TensorMapBytes map_c_rest;  // of a tile's last store, where it moves less than the others
  // The unit that a cluster of several blocks begins with, of a grid's first so many; the others
  // begin with that of their own number. Not in the line of all else that says where a block begins
  // (GemmArgs), which has no room.
  static constexpr int kPlaced = 72;
  unsigned char first_units[kPlaced];
};

// What a gated kernel takes: a longer argument costs every launch.
struct GatedWgmmaArgs : WgmmaArgs {
  TensorMapBytes map_up;
  TensorMapBytes map_up_edge;
};

// An operand that is copied to rows which the copy engine can load, before all else.
struct PackedOperand {
  const void* from;
  void* to;
  long long from_pitch;  // bytes from row to row
  long long to_pitch;
  long long row_bytes;
  int rows;
  int strips;  // of a row, kStripBytes each but the last
  Reciprocal of_strips;

  static constexpr int kStripBytes = 2048;  // that a warp copies at once
};

struct PackArgs {
  PackedOperand a;  // of no rows where it is loaded from where it lies
  PackedOperand b;
  unsigned* mark;  // where all blocks meet behind that
};

// What a kernel takes that packs its operands.
struct PackedWgmmaArgs : WgmmaArgs {
  PackArgs pack;
};

#endif  // AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_

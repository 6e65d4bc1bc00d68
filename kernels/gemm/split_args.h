// Of the launch argument of kernels whose blocks share a tile's k through a workspace, read by host
// twins and by device sources alike: no include, fundamental types only.
#ifndef AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_

// Of the parts that meet in the workspace (1: none do): k tiles of each, how many have one more,
// how many there are, and where they leave their sums.
struct SplitArgs {
  int part_steps;
  int longer_parts;
  int groups;
  Reciprocal of_groups;  // for mma, whose grid has a tile's parts side by side
  Reciprocal of_tiles;   // for wgmma, whose grid has all tiles' first parts, then the second ones
  void* workspace;
};

#endif  // AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_

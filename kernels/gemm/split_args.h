// Of the launch argument of kernels whose blocks share a tile's k, read by host twins and by device
// sources alike: no include, fundamental types only.
#ifndef AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_

// k tiles of a part, how many parts have one more, parts that meet in the workspace (1: none do),
// and where they leave their sums.
struct SplitArgs {
  int part_steps;
  int longer_parts;
  int groups;
  Reciprocal of_groups;
  void* workspace;
};

#endif  // AUTOTUNE_KERNELS_GEMM_SPLIT_ARGS_H_

// The launch argument of the wgmma kernel, read by its host twin and by its device source alike.
#ifndef AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_

// A CUtensorMap: what the copy engine knows of a matrix and of the box that one copy moves.
struct alignas(64) TensorMapBytes {
  unsigned long long words[16];
};

struct WgmmaArgs {
  TensorMapBytes map_a;
  TensorMapBytes map_b;
  TensorMapBytes map_c;
  GemmArgs gemm;    // tiles_m and tiles_n count the tiles of a cluster
  SplitArgs split;  // a group is a cluster
};

// What a gated kernel takes: a longer argument costs every launch.
struct GatedWgmmaArgs : WgmmaArgs {
  TensorMapBytes map_up;
};

#endif  // AUTOTUNE_KERNELS_GEMM_WGMMA_ARGS_H_

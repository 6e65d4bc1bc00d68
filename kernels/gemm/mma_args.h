// The launch argument of the mma kernel where it splits k, read by its host twin and by its device
// source alike. Elsewhere it is GemmArgs: a longer argument costs every launch.
#ifndef AUTOTUNE_KERNELS_GEMM_MMA_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_MMA_ARGS_H_

struct SplitMmaArgs : GemmArgs {
  SplitArgs split;
};

#endif  // AUTOTUNE_KERNELS_GEMM_MMA_ARGS_H_

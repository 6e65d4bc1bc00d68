// The launch argument of the mma_bulk kernel where boxes bring its rows, read by its host twin and
// by its device source alike.
#ifndef AUTOTUNE_KERNELS_GEMM_MMA_BULK_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_MMA_BULK_ARGS_H_

struct MmaBulkArgs {
  GemmArgs gemm;
  // Of A's boxes, then of B's: every 16 / align-th row, which all begin alike within 16 bytes, from
  // the piece of 16 in which the first of them begins.
  TensorMapBytes maps[16];
};

#endif  // AUTOTUNE_KERNELS_GEMM_MMA_BULK_ARGS_H_

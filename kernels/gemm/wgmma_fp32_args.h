// The launch argument of the wgmma_fp32 kernel, read by its host twin and by its device source.
#ifndef AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_ARGS_H_

struct WgmmaFp32Args {
  TensorMapBytes map_a;
  TensorMapBytes map_b;
  GemmArgs gemm;
};

// What a gated kernel takes: see GatedWgmmaArgs.
struct GatedWgmmaFp32Args : WgmmaFp32Args {
  TensorMapBytes map_up;
};

// What one takes that packs its operands.
struct PackedWgmmaFp32Args : WgmmaFp32Args {
  PackArgs pack;
};

#endif  // AUTOTUNE_KERNELS_GEMM_WGMMA_FP32_ARGS_H_

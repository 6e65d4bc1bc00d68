// The launch argument of every GEMM kernel, read by host twins and by device sources alike: no
// include, fundamental types only.
#ifndef AUTOTUNE_KERNELS_GEMM_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_ARGS_H_

// C[m,n] = alpha * A[m,k] * B[k,n] + beta * C. Leading dimensions in elements.
struct GemmArgs {
  const void* a;
  const void* b;
  void* c;
  long long lda;
  long long ldb;
  long long ldc;
  int m;
  int n;
  int k;
  int tiles_m;
  int tiles_n;
  int raster;   // 0: consecutive blocks walk along m, 1: along n
  int swizzle;  // tiles of the other direction that one walk covers
  float alpha;
  float beta;
};

#endif  // AUTOTUNE_KERNELS_GEMM_ARGS_H_

// The launch argument of every GEMM kernel, read by host twins and by device sources alike: no
// include, fundamental types only.
#ifndef AUTOTUNE_KERNELS_GEMM_ARGS_H_
#define AUTOTUNE_KERNELS_GEMM_ARGS_H_

// 2^64 / divisor, rounded up; 0 for 1. The upper half of its product with a 32-bit number is the
// quotient, exactly.
typedef unsigned long long Reciprocal;

// C[m,n] = alpha * A[m,k] * B[k,n] + beta * C, or, where the kernel is compiled as gated,
// activation(A * B) .* (A * Up). Leading dimensions in elements; Up has that of B.
struct alignas(64) GemmArgs {
  static constexpr int kRasterAlongN = 1;  // consecutive blocks walk along n, else along m
  static constexpr int kAdmits = 2;  // the launch behind this one may begin where its end is near

  // In one line of the constant cache, which is cold at every launch: all that says where a block
  // begins.
  int m;
  int n;
  int k;
  int tiles_m;
  int tiles_n;
  int flags;    // kRasterAlongN, kAdmits
  int swizzle;  // tiles of the other direction that each walk but the last covers
  // Of kernels with a stagger: tile i begins (i & starts) * stagger k tiles on.
  short starts;
  short stagger;
  // Of the tiles in a whole group of walks, in a walk's step, and in a step of the last group.
  Reciprocal of_group;
  Reciprocal of_step;
  Reciprocal of_last_step;
  float alpha;
  float beta;
  const void* a;
  const void* b;
  void* c;
  long long lda;
  long long ldb;
  long long ldc;
  const void* up;
};

#endif  // AUTOTUNE_KERNELS_GEMM_ARGS_H_

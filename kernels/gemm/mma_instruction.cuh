// The warp's matrix instruction on the element type, for all kernels that use it.

// fp32 bits rounded to tf32; the instruction itself would truncate.
__device__ __forceinline__ u32 round_tf32(u32 bits) {
  if constexpr (DTYPE == DTYPE_TF32) {
#if __CUDA_ARCH__ >= 800
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
#endif
  }
  return bits;
}

// d += a * b on one 16 x 8 x (16 or, for tf32, 8) tile.
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
#define AT_MMA(shape_and_types)                                                     \
  asm volatile("mma.sync.aligned." shape_and_types                                  \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if constexpr (DTYPE == DTYPE_BF16 || DTYPE == DTYPE_FP32) {  // fp32 comes in parts of bf16
    AT_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else if constexpr (DTYPE == DTYPE_FP16) {
    AT_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else {
    AT_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
#undef AT_MMA
#else
  // sm_75 multiplies 8 deep: the same fragments in two halves.
#define AT_MMA(a0, a1, b)                                      \
  asm volatile(                                                \
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"       \
      " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\n" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])         \
      : "r"(a0), "r"(a1), "r"(b))
  AT_MMA(a[0], a[1], b0);
  AT_MMA(a[2], a[3], b1);
#undef AT_MMA
#endif
}

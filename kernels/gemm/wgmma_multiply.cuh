// The warpgroup matrix instruction, in every type and direction of its operands.

// d += a * b on one 64 x kColumns x kStepK tile; d = a * b where `accumulate` is 0. The operands
// stand first, as if written, so that their numbers do not depend on how many accumulators follow.
__device__ __forceinline__ void multiply(float (&d)[kAccumulators], u64 a, u64 b, int accumulate) {
#define AT_WGMMA(types, transposes)                                          \
  asm volatile(                                                              \
      "{\n"                                                                  \
      ".reg .pred p;\n"                                                      \
      "setp.ne.b32 p, %2, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned." WGMMA_SHAPE types " {" WGMMA_REGISTERS \
      "}, %0, %1, p, 1, 1" transposes                                        \
      ";\n"                                                                  \
      "}\n"                                                                  \
      : "+l"(a), "+l"(b), "+r"(accumulate), WGMMA_OPERANDS)
#if DTYPE == DTYPE_TF32
  AT_WGMMA(".f32.tf32.tf32", "");
#else
#if DTYPE == DTYPE_BF16
#define AT_TYPES ".f32.bf16.bf16"
#else
#define AT_TYPES ".f32.f16.f16"
#endif
#if A_K_MAJOR && B_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 0, 0");
#elif A_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 0, 1");
#elif B_K_MAJOR
  AT_WGMMA(AT_TYPES, ", 1, 0");
#else
  AT_WGMMA(AT_TYPES, ", 1, 1");
#endif
#undef AT_TYPES
#endif
#undef AT_WGMMA
}

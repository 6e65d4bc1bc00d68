// What becomes of the products of one element of C: scaled by alpha, or, in a gated kernel, the
// first after an activation times the second. All in fp32.
//
//   GATED        1 where A is multiplied with two matrices of weights
//   ACTIVATION   0 gelu_tanh, 1 gelu_erf, 2 silu, 3 relu; read where GATED
//
// Largest errors of the activation beside fp64: gelu_tanh and silu into bf16 1.7e-4 at a gate of 1
// and 1.5e-3 at 6 (rounding to bf16: 3.9e-3 and 1.6e-2), into other types 7e-7 within 6; gelu_erf
// into 16 bits 2.6e-5 (rounding to fp16: 4.9e-4 at 1), into fp32 5e-7 within 6.

constexpr int kWeights = GATED ? 2 : 1;

#define ACTIVATION_GELU_TANH 0
#define ACTIVATION_GELU_ERF 1
#define ACTIVATION_SILU 2

__device__ __forceinline__ float exp2_fast(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(value) : "f"(x));
  return value;
}

__device__ __forceinline__ float reciprocal_fast(float x) {
  float value;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(value) : "f"(x));
  return value;
}

__device__ __forceinline__ float tanh_fast(float x) {
  float value;
  asm("tanh.approx.f32 %0, %1;\n" : "=f"(value) : "f"(x));
  return value;
}

// x times the logistic function of 2 * half, which is (1 + tanh(half)) / 2.
__device__ __forceinline__ float times_logistic(float x, float half) {
  if constexpr (OUT_DTYPE == DTYPE_BF16) {
    x *= 0.5f;
    return fmaf(x, tanh_fast(half), x);
  } else {
    constexpr float kMinusTwoLog2E = -2.885390082f;
    return x * reciprocal_fast(1.0f + exp2_fast(half * kMinusTwoLog2E));
  }
}

// x times the normal distribution function.
__device__ __forceinline__ float times_normal(float x) {
  constexpr float kRootHalf = 0.7071067812f;
  if constexpr (kOutBytes == 4) {
    return 0.5f * x * (1.0f + erff(x * kRootHalf));
  } else {
    // erfc(z) = exp(-z * z) times a polynomial (Abramowitz and Stegun, 7.1.25).
    const float size = fminf(fabsf(x), 16.0f);  // it is 0 there, and infinity must not meet it
    const float t = reciprocal_fast(fmaf(size, 0.47047f * kRootHalf, 1.0f));
    const float half_polynomial =
        t * fmaf(t, fmaf(t, 0.5f * 0.7478556f, 0.5f * -0.0958798f), 0.5f * 0.3480242f);
    constexpr float kMinusHalfLog2E = -0.7213475204f;
    const float gauss = exp2_fast(size * size * kMinusHalfLog2E);
    const float positive = x < 0.0f ? 0.0f : x;  // NaN stays, which fmaxf would make 0
    return fmaf(-size * gauss, half_polynomial, positive);
  }
}

__device__ __forceinline__ float activated(float x) {
  if constexpr (ACTIVATION == ACTIVATION_GELU_TANH) {
    constexpr float kRootTwoOverPi = 0.7978845608f;
    return times_logistic(x, x * fmaf(x * x, 0.044715f * kRootTwoOverPi, kRootTwoOverPi));
  } else if constexpr (ACTIVATION == ACTIVATION_GELU_ERF) {
    return times_normal(x);
  } else if constexpr (ACTIVATION == ACTIVATION_SILU) {
    return times_logistic(x, 0.5f * x);
  } else {
    return x < 0.0f ? 0.0f : x;
  }
}

// C but for beta, from the element's products with the first and, where gated, the second weights.
__device__ __forceinline__ float finished(const GemmArgs& args, float first, float second) {
  if constexpr (GATED) {
    return activated(first) * second;
  } else {
    return args.alpha * first;
  }
}

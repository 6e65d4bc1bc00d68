// Problems by their sizes, type and layout, and all of those.
#pragma once

#include <cstdint>

#include "kernels/problem.h"

namespace autotune::test {

inline Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype = DType::bf16,
                    Layout layout = Layout::tn) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  problem.layout = layout;
  return checked(problem).value();
}

inline Problem geglu(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype, Layout layout,
                     Activation activation) {
  Problem problem = gemm(m, n, k, dtype, layout);
  problem.family = "geglu";
  problem.activation = activation;
  return checked(problem).value();
}

constexpr DType kAllDTypes[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};
constexpr Activation kAllActivations[] = {Activation::gelu_tanh, Activation::gelu_erf,
                                          Activation::silu, Activation::relu};
constexpr Layout kAllLayouts[] = {Layout::tn, Layout::tt, Layout::nn, Layout::nt};

}  // namespace autotune::test

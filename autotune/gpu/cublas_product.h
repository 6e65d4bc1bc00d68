// One product as cuBLASLt and cuBLAS compute it, in each of the ways that they offer. Needs their
// headers: included in autotune/gpu/ only.
#pragma once

#include <vector>

#include "autotune/gpu/cublas.h"
#include "autotune/gpu/memory.h"
#include "kernels/kernel.h"

namespace autotune::gpu {

// Handles and the workspace that all products on a stream share. Move-only.
struct CublasHandles {
  static Expected<CublasHandles> create(void* stream);

  const CublasApi* api = nullptr;
  DeviceMemory workspace;
  CublasOwner<cublasHandle_t> classic;
  CublasOwner<cublasLtHandle_t> lt;
};

// C = alpha * A * B + beta * C of a checked problem, whose family does not matter. Move-only.
class CublasProduct {
 public:
  static Expected<CublasProduct> create(const CublasHandles& handles, const Problem& problem);

  // The ways that cuBLASLt proposes, best first; there may be none.
  int heuristics() const { return static_cast<int>(heuristics_.size()); }
  // `heuristic`: one of them, or -1 for cublasGemmEx. Asynchronous.
  Expected<void> run(const CublasHandles& handles, int heuristic, const DevicePointers& pointers,
                     void* stream) const;

 private:
  Expected<void> describe(const CublasApi& api);
  void ask_heuristics(const CublasHandles& handles);

  Problem problem_;
  CublasOwner<cublasLtMatmulDesc_t> description_;
  CublasOwner<cublasLtMatrixLayout_t> layout_b_;
  CublasOwner<cublasLtMatrixLayout_t> layout_a_;
  CublasOwner<cublasLtMatrixLayout_t> layout_c_;
  std::vector<cublasLtMatmulHeuristicResult_t> heuristics_;
};

}  // namespace autotune::gpu

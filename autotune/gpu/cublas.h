// cuBLAS and cuBLASLt, opened at run time. Needs their headers: included in autotune/gpu/ only.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>

#include <utility>

#include "autotune/types.h"

namespace autotune::gpu {

#define AUTOTUNE_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate)                    \
  X(cublasDestroy)                   \
  X(cublasSetStream)                 \
  X(cublasSetWorkspace)

#define AUTOTUNE_CUBLASLT_FUNCTIONS(X)    \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmul)

struct CublasApi {
#define AUTOTUNE_DECLARE(name) decltype(&::name) name = nullptr;
  AUTOTUNE_CUBLAS_FUNCTIONS(AUTOTUNE_DECLARE)
  AUTOTUNE_CUBLASLT_FUNCTIONS(AUTOTUNE_DECLARE)
#undef AUTOTUNE_DECLARE
  // Overloaded in C++, so its type is spelt out.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                                 int k, const void* alpha, const void* a, cudaDataType, int lda,
                                 const void* b, cudaDataType, int ldb, const void* beta, void* c,
                                 cudaDataType, int ldc, cublasComputeType_t,
                                 cublasGemmAlgo_t) = nullptr;
};

// Both libraries, the same for the whole program. failed where they cannot be opened; the sentence
// says what was looked for.
Expected<const CublasApi*> cublas();

// Owner of a handle or descriptor; `destroy` is an entry point of the table.
template <class Raw>
class CublasOwner {
 public:
  using Destroy = cublasStatus_t (*)(Raw);
  CublasOwner() = default;
  CublasOwner(Raw raw, Destroy destroy) noexcept : raw_(raw), destroy_(destroy) {}
  CublasOwner(CublasOwner&& other) noexcept
      : raw_(std::exchange(other.raw_, Raw{})), destroy_(other.destroy_) {}
  CublasOwner& operator=(CublasOwner&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~CublasOwner() {
    if (raw_ != Raw{}) destroy_(raw_);
  }
  Raw get() const { return raw_; }

 private:
  Raw raw_{};
  Destroy destroy_ = nullptr;
};

}  // namespace autotune::gpu

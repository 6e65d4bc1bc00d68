#include "autotune/gpu/cublas_product.h"

#include <fmt/core.h>

#include <utility>

#include "kernels/problem.h"

namespace autotune::gpu {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;
constexpr int kMostHeuristics = 64;

cudaDataType_t type_of(DType dtype) {
  if (dtype == DType::bf16) return CUDA_R_16BF;
  return dtype == DType::fp16 ? CUDA_R_16F : CUDA_R_32F;
}

// Pedantic: fp32 must not be multiplied as TF32, whatever the environment says.
cublasComputeType_t compute_type_of(DType dtype) {
  if (dtype == DType::fp32) return CUBLAS_COMPUTE_32F_PEDANTIC;
  return dtype == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// cuBLAS is column-major: row-major C = A B is column-major C^T = B^T A^T, and an operand whose
// contiguous direction is the first of its transpose needs no transposition.
struct Shape {
  cublasOperation_t b_operation;
  cublasOperation_t a_operation;
  std::int64_t b_rows, b_columns, a_rows, a_columns;  // as stored, column-major
};
Shape shape_of(const Problem& p) {
  Shape s{};
  const bool b_k = b_is_k_major(p.layout);
  const bool a_k = a_is_k_major(p.layout);
  s.b_operation = b_k ? CUBLAS_OP_T : CUBLAS_OP_N;
  s.b_rows = b_k ? p.k : p.n;
  s.b_columns = b_k ? p.n : p.k;
  s.a_operation = a_k ? CUBLAS_OP_N : CUBLAS_OP_T;
  s.a_rows = a_k ? p.k : p.m;
  s.a_columns = a_k ? p.m : p.k;
  return s;
}

Expected<void> refused(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return fail(ErrorCode::failed, fmt::format("{}: cuBLAS status {}", what, int{status}));
}

Expected<CublasOwner<cublasLtMatrixLayout_t>> layout(const CublasApi& api, DType dtype,
                                                     std::int64_t rows, std::int64_t columns,
                                                     std::int64_t ld) {
  cublasLtMatrixLayout_t raw = nullptr;
  auto state =
      refused(api.cublasLtMatrixLayoutCreate(&raw, type_of(dtype), static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), ld),
              "cannot describe a matrix");
  if (!state) return tl::unexpected(state.error());
  return CublasOwner<cublasLtMatrixLayout_t>(raw, api.cublasLtMatrixLayoutDestroy);
}

}  // namespace

Expected<CublasHandles> CublasHandles::create(void* stream) {
  auto found = cublas();
  if (!found) return tl::unexpected(found.error());
  const CublasApi& api = **found;
  auto workspace = DeviceMemory::allocate(kWorkspaceBytes);
  if (!workspace) return tl::unexpected(workspace.error());
  CublasHandles made;
  made.api = &api;
  made.workspace = std::move(*workspace);
  cublasHandle_t handle = nullptr;
  auto state = refused(api.cublasCreate(&handle), "cannot start cuBLAS");
  if (!state) return tl::unexpected(state.error());
  made.classic = {handle, api.cublasDestroy};
  cublasLtHandle_t lt_handle = nullptr;
  state = refused(api.cublasLtCreate(&lt_handle), "cannot start cuBLASLt");
  if (!state) return tl::unexpected(state.error());
  made.lt = {lt_handle, api.cublasLtDestroy};
  state = refused(api.cublasSetStream(handle, static_cast<cudaStream_t>(stream)),
                  "cannot set the stream");
  if (state) {
    state =
        refused(api.cublasSetWorkspace(handle, reinterpret_cast<void*>(made.workspace.address()),
                                       made.workspace.bytes()),
                "cannot set the workspace");
  }
  if (!state) return tl::unexpected(state.error());
  return made;
}

Expected<CublasProduct> CublasProduct::create(const CublasHandles& handles,
                                              const Problem& problem) {
  CublasProduct made;
  made.problem_ = problem;
  auto state = made.describe(*handles.api);
  if (!state) return tl::unexpected(state.error());
  made.ask_heuristics(handles);
  return made;
}

Expected<void> CublasProduct::describe(const CublasApi& api) {
  const Shape shape = shape_of(problem_);
  cublasLtMatmulDesc_t raw = nullptr;
  auto state =
      refused(api.cublasLtMatmulDescCreate(&raw, compute_type_of(problem_.dtype), CUDA_R_32F),
              "cannot describe a product");
  if (!state) return state;
  description_ = {raw, api.cublasLtMatmulDescDestroy};
  // cuBLASLt's first operand is our B, its second our A.
  for (const auto& [attribute, operation] :
       {std::pair{CUBLASLT_MATMUL_DESC_TRANSA, shape.b_operation},
        std::pair{CUBLASLT_MATMUL_DESC_TRANSB, shape.a_operation}}) {
    state =
        refused(api.cublasLtMatmulDescSetAttribute(raw, attribute, &operation, sizeof(operation)),
                "cannot describe a product");
    if (!state) return state;
  }
  auto b = layout(api, problem_.dtype, shape.b_rows, shape.b_columns, problem_.ldb);
  if (!b) return tl::unexpected(b.error());
  auto a = layout(api, problem_.dtype, shape.a_rows, shape.a_columns, problem_.lda);
  if (!a) return tl::unexpected(a.error());
  auto c = layout(api, problem_.out_dtype, problem_.n, problem_.m, problem_.ldc);
  if (!c) return tl::unexpected(c.error());
  layout_b_ = std::move(*b);
  layout_a_ = std::move(*a);
  layout_c_ = std::move(*c);
  return {};
}

// None (cuBLASLt cannot serve the problem) is no error: cublasGemmEx may.
void CublasProduct::ask_heuristics(const CublasHandles& handles) {
  const CublasApi& api = *handles.api;
  cublasLtMatmulPreference_t raw = nullptr;
  if (api.cublasLtMatmulPreferenceCreate(&raw) != CUBLAS_STATUS_SUCCESS) return;
  const CublasOwner<cublasLtMatmulPreference_t> preference(raw,
                                                           api.cublasLtMatmulPreferenceDestroy);
  api.cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  heuristics_.resize(kMostHeuristics);
  int found = 0;
  const cublasStatus_t status = api.cublasLtMatmulAlgoGetHeuristic(
      handles.lt.get(), description_.get(), layout_b_.get(), layout_a_.get(), layout_c_.get(),
      layout_c_.get(), raw, kMostHeuristics, heuristics_.data(), &found);
  heuristics_.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
}

Expected<void> CublasProduct::run(const CublasHandles& handles, int heuristic,
                                  const DevicePointers& pointers, void* stream) const {
  const CublasApi& api = *handles.api;
  const auto* a = reinterpret_cast<const void*>(pointers.a);
  const auto* b = reinterpret_cast<const void*>(pointers.b);
  auto* c = reinterpret_cast<void*>(pointers.c);
  const auto alpha = static_cast<float>(problem_.alpha);
  const auto beta = static_cast<float>(problem_.beta);
  if (heuristic >= 0) {
    return refused(
        api.cublasLtMatmul(handles.lt.get(), description_.get(), &alpha, b, layout_b_.get(), a,
                           layout_a_.get(), &beta, c, layout_c_.get(), c, layout_c_.get(),
                           &heuristics_[static_cast<std::size_t>(heuristic)].algo,
                           reinterpret_cast<void*>(handles.workspace.address()),
                           handles.workspace.bytes(), static_cast<cudaStream_t>(stream)),
        "cublasLtMatmul");
  }
  const Shape shape = shape_of(problem_);
  const cudaDataType_t in = type_of(problem_.dtype);
  return refused(
      api.cublasGemmEx(handles.classic.get(), shape.b_operation, shape.a_operation,
                       static_cast<int>(problem_.n), static_cast<int>(problem_.m),
                       static_cast<int>(problem_.k), &alpha, b, in, static_cast<int>(problem_.ldb),
                       a, in, static_cast<int>(problem_.lda), &beta, c, type_of(problem_.out_dtype),
                       static_cast<int>(problem_.ldc), compute_type_of(problem_.dtype),
                       CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

}  // namespace autotune::gpu

#include "autotune/gpu/baseline.h"

#include <fmt/core.h>

#include <array>

#include "autotune/gpu/cublas.h"
#include "autotune/gpu/statistics.h"
#include "kernels/problem.h"

namespace autotune::gpu {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;
constexpr int kMostHeuristics = 64;
constexpr std::size_t kProbes = 5;

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

struct Candidate {
  std::string name;
  int heuristic = -1;  // -1: cublasGemmEx
  double us = 0;
  Correctness result;
};

}  // namespace

struct Baseline::Impl {
  const CublasApi& api;
  Problem problem;
  TimingMode mode;
  DevicePointers pointers;
  float alpha = 1;
  float beta = 0;
  DeviceMemory workspace;
  CublasOwner<cublasHandle_t> classic;
  CublasOwner<cublasLtHandle_t> lt;
  CublasOwner<cublasLtMatmulDesc_t> description;
  CublasOwner<cublasLtMatrixLayout_t> layout_b;
  CublasOwner<cublasLtMatrixLayout_t> layout_a;
  CublasOwner<cublasLtMatrixLayout_t> layout_c;
  std::vector<cublasLtMatmulHeuristicResult_t> heuristics;
  Candidate chosen;
  int timed = 0;

  Expected<void> create_handles(void* stream);
  Expected<void> describe_product();
  Expected<CublasOwner<cublasLtMatrixLayout_t>> layout(DType dtype, std::int64_t rows,
                                                       std::int64_t columns, std::int64_t ld);
  void ask_heuristics();
  Expected<void> run(int heuristic, void* stream);
  Expected<void> try_candidate(Workbench& bench, Timer& timer, Operands& operands,
                               Candidate candidate);
};

Expected<void> Baseline::Impl::create_handles(void* stream) {
  cublasHandle_t handle = nullptr;
  auto state = refused(api.cublasCreate(&handle), "cannot start cuBLAS");
  if (!state) return state;
  classic = {handle, api.cublasDestroy};
  cublasLtHandle_t lt_handle = nullptr;
  state = refused(api.cublasLtCreate(&lt_handle), "cannot start cuBLASLt");
  if (!state) return state;
  lt = {lt_handle, api.cublasLtDestroy};
  state = refused(api.cublasSetStream(handle, static_cast<cudaStream_t>(stream)),
                  "cannot set the stream");
  if (!state) return state;
  return refused(api.cublasSetWorkspace(handle, reinterpret_cast<void*>(workspace.address()),
                                        workspace.bytes()),
                 "cannot set the workspace");
}

Expected<CublasOwner<cublasLtMatrixLayout_t>> Baseline::Impl::layout(DType dtype, std::int64_t rows,
                                                                     std::int64_t columns,
                                                                     std::int64_t ld) {
  cublasLtMatrixLayout_t raw = nullptr;
  auto state =
      refused(api.cublasLtMatrixLayoutCreate(&raw, type_of(dtype), static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(columns), ld),
              "cannot describe a matrix");
  if (!state) return tl::unexpected(state.error());
  return CublasOwner<cublasLtMatrixLayout_t>(raw, api.cublasLtMatrixLayoutDestroy);
}

Expected<void> Baseline::Impl::describe_product() {
  const Shape shape = shape_of(problem);
  cublasLtMatmulDesc_t raw = nullptr;
  auto state =
      refused(api.cublasLtMatmulDescCreate(&raw, compute_type_of(problem.dtype), CUDA_R_32F),
              "cannot describe a product");
  if (!state) return state;
  description = {raw, api.cublasLtMatmulDescDestroy};
  // cuBLASLt's first operand is our B, its second our A.
  for (const auto& [attribute, operation] :
       {std::pair{CUBLASLT_MATMUL_DESC_TRANSA, shape.b_operation},
        std::pair{CUBLASLT_MATMUL_DESC_TRANSB, shape.a_operation}}) {
    state =
        refused(api.cublasLtMatmulDescSetAttribute(raw, attribute, &operation, sizeof(operation)),
                "cannot describe a product");
    if (!state) return state;
  }
  auto b = layout(problem.dtype, shape.b_rows, shape.b_columns, problem.ldb);
  if (!b) return tl::unexpected(b.error());
  auto a = layout(problem.dtype, shape.a_rows, shape.a_columns, problem.lda);
  if (!a) return tl::unexpected(a.error());
  auto c = layout(problem.out_dtype, problem.n, problem.m, problem.ldc);
  if (!c) return tl::unexpected(c.error());
  layout_b = std::move(*b);
  layout_a = std::move(*a);
  layout_c = std::move(*c);
  return {};
}

// None (cuBLASLt cannot serve the problem) is no error: cublasGemmEx may.
void Baseline::Impl::ask_heuristics() {
  cublasLtMatmulPreference_t raw = nullptr;
  if (api.cublasLtMatmulPreferenceCreate(&raw) != CUBLAS_STATUS_SUCCESS) return;
  const CublasOwner<cublasLtMatmulPreference_t> preference(raw,
                                                           api.cublasLtMatmulPreferenceDestroy);
  api.cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                           &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  heuristics.resize(kMostHeuristics);
  int found = 0;
  const cublasStatus_t status = api.cublasLtMatmulAlgoGetHeuristic(
      lt.get(), description.get(), layout_b.get(), layout_a.get(), layout_c.get(), layout_c.get(),
      raw, kMostHeuristics, heuristics.data(), &found);
  heuristics.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
}

Expected<void> Baseline::Impl::run(int heuristic, void* stream) {
  const auto* a = reinterpret_cast<const void*>(pointers.a);
  const auto* b = reinterpret_cast<const void*>(pointers.b);
  auto* c = reinterpret_cast<void*>(pointers.c);
  if (heuristic >= 0) {
    return refused(api.cublasLtMatmul(lt.get(), description.get(), &alpha, b, layout_b.get(), a,
                                      layout_a.get(), &beta, c, layout_c.get(), c, layout_c.get(),
                                      &heuristics[static_cast<std::size_t>(heuristic)].algo,
                                      reinterpret_cast<void*>(workspace.address()),
                                      workspace.bytes(), static_cast<cudaStream_t>(stream)),
                   "cublasLtMatmul");
  }
  const Shape shape = shape_of(problem);
  const cudaDataType_t in = type_of(problem.dtype);
  return refused(
      api.cublasGemmEx(classic.get(), shape.b_operation, shape.a_operation,
                       static_cast<int>(problem.n), static_cast<int>(problem.m),
                       static_cast<int>(problem.k), &alpha, b, in, static_cast<int>(problem.ldb), a,
                       in, static_cast<int>(problem.lda), &beta, c, type_of(problem.out_dtype),
                       static_cast<int>(problem.ldc), compute_type_of(problem.dtype),
                       CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

// Takes the candidate as the chosen one where it runs, is right and is faster. Only a lost GPU is
// an error: a candidate that cuBLAS itself refuses is passed over.
Expected<void> Baseline::Impl::try_candidate(Workbench& bench, Timer& timer, Operands& operands,
                                             Candidate candidate) {
  const int heuristic = candidate.heuristic;
  Subject subject{[this, heuristic](void* stream) { return run(heuristic, stream); },
                  [&](void*) { return operands.restore(bench); }, nullptr, 1};
  auto state = operands.poison(bench);
  if (!state) return state;
  if (!subject.launch(bench.stream())) return bench.synchronize();
  auto result = operands.verify(bench);
  if (!result) return tl::unexpected(result.error());
  candidate.result = *result;
  const bool exact = problem.dtype != DType::fp32 || result->ok;
  if (!exact || !result->complete) return {};

  if (mode == TimingMode::hot) {
    auto hot = timer.make_hot(subject);
    if (!hot) return bench.lost() ? Expected<void>(tl::unexpected(hot.error())) : Expected<void>{};
    subject = std::move(*hot);
  }
  std::array<const Subject*, kProbes> order{};
  order.fill(&subject);
  auto times = timer.sample(order);
  if (!times) {
    return bench.lost() ? Expected<void>(tl::unexpected(times.error())) : Expected<void>{};
  }
  ++timed;
  candidate.us = median(*times);
  if (chosen.name.empty() || candidate.us < chosen.us) chosen = std::move(candidate);
  return {};
}

Expected<Baseline> Baseline::choose(Workbench& bench, Timer& timer, Operands& operands,
                                    TimingMode mode) {
  auto api = cublas();
  if (!api) return tl::unexpected(api.error());
  auto workspace = DeviceMemory::allocate(kWorkspaceBytes);
  if (!workspace) return tl::unexpected(workspace.error());
  auto impl = std::unique_ptr<Impl>(new Impl{**api, operands.problem(), mode, operands.pointers()});
  impl->alpha = static_cast<float>(impl->problem.alpha);
  impl->beta = static_cast<float>(impl->problem.beta);
  impl->workspace = std::move(*workspace);
  auto state = impl->create_handles(bench.stream());
  if (state) state = impl->describe_product();
  if (!state) return tl::unexpected(state.error());
  impl->ask_heuristics();

  const int heuristics = static_cast<int>(impl->heuristics.size());
  for (int i = -1; i < heuristics; ++i) {
    Candidate candidate{i < 0 ? "cublasGemmEx" : fmt::format("cublasLt #{}", i), i, 0, {}};
    state = impl->try_candidate(bench, timer, operands, std::move(candidate));
    if (!state) return tl::unexpected(state.error());
  }
  if (impl->timed == 0) {
    return fail(ErrorCode::failed,
                fmt::format("cuBLAS has nothing that computes {}", describe(operands.problem())));
  }
  return Baseline(std::move(impl));
}

Baseline::Baseline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Baseline::Baseline(Baseline&&) noexcept = default;
Baseline& Baseline::operator=(Baseline&&) noexcept = default;
Baseline::~Baseline() = default;

const std::string& Baseline::name() const { return impl_->chosen.name; }
int Baseline::candidates() const { return impl_->timed; }
const Correctness& Baseline::result() const { return impl_->chosen.result; }

Launch Baseline::launch() const {
  return [impl = impl_.get()](void* stream) { return impl->run(impl->chosen.heuristic, stream); };
}

}  // namespace autotune::gpu

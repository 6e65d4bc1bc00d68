// The types that every room of autotune and every user of the library shares: what a GEMM-like
// problem is, and what an error is. This header includes nothing of the project.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace autotune {

// Element types. tf32 is stored as fp32 and multiplied with a 10-bit mantissa; fp32 is multiplied
// with all of its 24 bits. Accumulation is always fp32.
enum class DType : std::uint8_t { bf16, fp16, tf32, fp32 };

// Letters say how A[m,k] and B[k,n] lie in memory; C[m,n] is always row-major.
//   t for A: row-major (k contiguous)      n for A: column-major (m contiguous)
//   n for B: column-major (k contiguous)   t for B: row-major (n contiguous)
// tn is a Linear layer (x W^T), tt is the plain x @ w.
enum class Layout : std::uint8_t { tn, tt, nn, nt };

// What a gated family applies to its first product, element by element: the two forms of GELU,
// SiLU (x times the logistic function of x) and ReLU.
enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, silu, relu };

// cold: the L2 holds none of the operands when the kernel starts. hot: launches back to back.
enum class TimingMode : std::uint8_t { cold, hot };

// One problem: C = alpha * A * B + beta * C with A[m,k], B[k,n], C[m,n]. The family geglu is the
// gated first stage of an MLP: C = activation(A * B) .* (A * Up), with Up stored as B is. The
// family geglu_mlp is the whole MLP, y = (activation(x * Wg) .* (x * Wu)) * Wd: m is tokens, k
// hidden, n intermediate; lda, ldb, ldc are those of x[m,k], of Wg and Wu[k,n] and of y[m,k];
// Wd[n,k] is tight and laid out as B, and the intermediate is stored as the dtype is. Leading
// dimensions are in elements; 0 means tight. `checked()` in kernels/problem.h fills them.
struct Problem {
  std::string family = "gemm";
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;
  DType out_dtype = DType::bf16;  // storage type of C (or y): as dtype, or fp32; of tf32 only that
  Layout layout = Layout::tn;
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  std::int64_t ldc = 0;
  double alpha = 1.0;  // both are used as fp32; of gated families and the MLP 1 and 0
  double beta = 0.0;
  TimingMode mode = TimingMode::cold;
  // dtype fp32: by fp32 multiply-adds (FFMA) alone. Otherwise tensor cores may multiply fp32 in
  // parts, whose error is about that of a chain of FFMA, but whose bits are others.
  bool exact_fp32 = false;
  Activation activation = Activation::gelu_tanh;  // of gated families and the MLP

  friend bool operator==(const Problem&, const Problem&) = default;
};

enum class ErrorCode : std::uint8_t {
  bad_input,     // the caller's values, files or options are wrong
  nothing_fits,  // no configuration of any kernel can serve the problem on this device
  no_gpu,        // a GPU is needed and none (or not the named one) is usable
  no_compiler,   // NVRTC is needed and cannot be loaded
  io_failed,     // the file system refused
  foreign_file,  // a file exists but is not ours, or is newer than this program
  corrupt_file,  // a file of ours is damaged
  busy,          // another process holds what is needed
  cancelled,     // stopped on request
  failed,        // the work itself failed (a mismatch, a lost worker)
};

// What the environment refused: one sentence that says what and where, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string message;
};

template <class T>
using Expected = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

}  // namespace autotune

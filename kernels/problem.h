// Problem's meaning: names of its parts, its checks, its key, its sizes in bytes and operations.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune {

std::string_view to_string(DType dtype);
std::string_view to_string(Layout layout);
std::string_view to_string(TimingMode mode);
std::string_view to_string(Activation activation);
std::optional<DType> parse_dtype(std::string_view text);
std::optional<Layout> parse_layout(std::string_view text);
std::optional<TimingMode> parse_timing_mode(std::string_view text);
std::optional<Activation> parse_activation(std::string_view text);

// "bf16, fp16, tf32, fp32" and so on, for messages that list what is accepted.
std::string accepted_dtypes();
std::string accepted_layouts();
std::string accepted_activations();

// Decimal digits only, 1 to 2^31-1; the one parser of dimensions for command line and YAML.
// `what` names the value in the message ("--m", "m").
Expected<std::int64_t> parse_dimension(std::string_view what, std::string_view text);

// What m, n and k are called: so, or of the MLP tokens, intermediate and hidden.
struct DimensionNames {
  const char* m;
  const char* n;
  const char* k;
};
DimensionNames dimension_names(std::string_view family);

// Bytes of one stored element: 2 for bf16 and fp16, 4 for tf32 and fp32.
int storage_bytes(DType dtype);

// The output type that a dtype has when none is asked for (tf32 -> fp32, else the dtype itself).
DType default_out_dtype(DType dtype);

// True when k is the contiguous direction of the operand.
bool a_is_k_major(Layout layout);
bool b_is_k_major(Layout layout);
// Of the product's transpose, whose A is B's transpose: tt and nn change places.
Layout transposed(Layout layout);

// Whether C = activation(A * B) .* (A * Up): two matrices of weights, and no alpha or beta.
bool is_gated(const Problem& problem);
// Whether it is an MLP, which takes two kernels (stages.h).
bool is_mlp(const Problem& problem);
// Whether it is one or the other.
bool has_activation(const Problem& problem);

// Validates every field and fills leading dimensions that are 0. bad_input names the field.
Expected<Problem> checked(Problem problem);

// How operands lie in memory as kernels are to see them. A single row of A whose elements lie one
// after the other is contiguous along k whatever its layout is called, and so is a single column of
// B; and the leading dimension of a single line, which nothing is found by, is such that lines
// would be aligned. `problem` is checked.
struct Served {
  Layout layout;
  std::int64_t lda;
  std::int64_t ldb;
  std::int64_t ldc;
};
Served served(const Problem& problem);
// The problem with its operands called so.
Problem as_served(Problem problem);

// Bytes to which each row of an operand is aligned (16, 8, 4 or 2), its base being 16-byte aligned.
int row_alignment(std::int64_t leading_dimension, DType dtype);

// Bytes of a line of the L2, on every GPU so far.
inline constexpr std::int64_t kL2Line = 128;
// Whether rows of A or of B begin within a line, as they are served.
bool splits_lines(const Problem& problem);

// "gemm m=4096 n=4096 k=4096 dtype=bf16 out=bf16 layout=tn align=16/16/16 beta=0 mode=cold":
// everything that decides which configuration is best, for a checked problem. Leading dimensions
// count by their alignment (bytes of A's, B's and C's rows), beta as "0" or "nonzero". Ends with
// " splits_lines" where rows of A or B do, with " exact_fp32" where that is asked for, and with
// " activation=silu" where the family has one.
std::string problem_key(const Problem& problem);

// "4096x4096x4096 bf16 tn", with only the unusual parts added; of an MLP, "geglu_mlp tokens=100
// hidden=512 intermediate=1524 bf16 tn".
std::string describe(const Problem& problem);

// 2 m n k, and the bytes of A, B and C that must cross DRAM at least once (C twice if beta != 0).
// Of a gated family, both products and both matrices of weights; of an MLP, all three, and no
// intermediate.
double flops(const Problem& problem);
double compulsory_bytes(const Problem& problem);

// What compiled code depends on besides the config, of the problem as it is served. Dimensions are
// run-time arguments.
struct KernelTraits {
  DType dtype = DType::bf16;
  DType out_dtype = DType::bf16;
  Layout layout = Layout::tn;
  int align_a = 16;  // bytes, see row_alignment
  int align_b = 16;
  int align_c = 16;
  bool beta = false;  // C is read as well
  bool exact_fp32 = false;
  bool gated = false;
  Activation activation = Activation::gelu_tanh;  // where gated

  friend bool operator==(const KernelTraits&, const KernelTraits&) = default;
};
KernelTraits traits_of(const Problem& problem);

}  // namespace autotune

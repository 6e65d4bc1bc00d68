#include "kernels/problem.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace autotune {
namespace {

constexpr std::int64_t kMaxDimension = std::numeric_limits<std::int32_t>::max();

template <class T>
struct Name {
  T value;
  std::string_view text;
};

constexpr std::array<Name<DType>, 4> kDTypes = {
    {{DType::bf16, "bf16"}, {DType::fp16, "fp16"}, {DType::tf32, "tf32"}, {DType::fp32, "fp32"}}};
constexpr std::array<Name<Layout>, 4> kLayouts = {
    {{Layout::tn, "tn"}, {Layout::tt, "tt"}, {Layout::nn, "nn"}, {Layout::nt, "nt"}}};
constexpr std::array<Name<TimingMode>, 2> kModes = {
    {{TimingMode::cold, "cold"}, {TimingMode::hot, "hot"}}};
constexpr std::array<Name<Activation>, 4> kActivations = {{{Activation::gelu_tanh, "gelu_tanh"},
                                                           {Activation::gelu_erf, "gelu_erf"},
                                                           {Activation::silu, "silu"},
                                                           {Activation::relu, "relu"}}};
constexpr std::string_view kGated = "geglu";
constexpr std::string_view kMlp = "geglu_mlp";

// Empty for a value that is no member, which a caller of the C++ API can construct.
template <class T, std::size_t N>
std::string_view name_of(const std::array<Name<T>, N>& names, T value) {
  for (const auto& name : names) {
    if (name.value == value) return name.text;
  }
  return {};
}

template <class T, std::size_t N>
std::optional<T> value_named(const std::array<Name<T>, N>& names, std::string_view text) {
  for (const auto& name : names) {
    if (name.text == text) return name.value;
  }
  return std::nullopt;
}

template <class T, std::size_t N>
std::string listed(const std::array<Name<T>, N>& names) {
  std::string list;
  for (const auto& name : names) {
    if (!list.empty()) list += ", ";
    list += name.text;
  }
  return list;
}

bool writes(DType dtype, DType out) {
  return out == DType::fp32 || (out == dtype && out != DType::tf32);
}

std::int64_t tight_lda(const Problem& p) { return a_is_k_major(p.layout) ? p.k : p.m; }
std::int64_t tight_ldb(const Problem& p) { return b_is_k_major(p.layout) ? p.k : p.n; }
std::int64_t tight_ldc(const Problem& p) { return is_mlp(p) ? p.k : p.n; }

// Fills a leading dimension of 0; the message where it cannot be.
std::string settle_leading(std::string_view name, std::int64_t tight, std::int64_t& value) {
  if (value == 0) value = tight;
  if (value >= tight && value <= kMaxDimension) return {};
  return fmt::format("{} = {} is not possible for this problem: give {} to {}", name, value, tight,
                     kMaxDimension);
}

// What a gated family has no use for, and what only a gated one has.
std::string wrong_gate(const Problem& p) {
  if (!has_activation(p)) {
    if (p.activation == Problem{}.activation) return {};
    return fmt::format("activation {} does not go with the family {}: it is for {} and {}",
                       to_string(p.activation), p.family, kGated, kMlp);
  }
  if (p.alpha != 1 || p.beta != 0) {
    return fmt::format("{} = {} does not go with the family {}: leave it out",
                       p.alpha != 1 ? "alpha" : "beta", p.alpha != 1 ? p.alpha : p.beta, p.family);
  }
  return {};
}

std::string wrong_field(const Problem& p) {
  if (p.family.empty()) return "family is empty: name a kernel family, for example gemm";
  const DimensionNames names = dimension_names(p.family);
  for (const auto& [name, value] : {std::pair{names.m, p.m}, {names.n, p.n}, {names.k, p.k}}) {
    if (value < 1 || value > kMaxDimension) {
      return fmt::format("{} = {} is out of range: give 1 to {}", name, value, kMaxDimension);
    }
  }
  if (name_of(kDTypes, p.dtype).empty()) {
    return fmt::format("dtype is not one of {}", accepted_dtypes());
  }
  if (name_of(kDTypes, p.out_dtype).empty() || !writes(p.dtype, p.out_dtype)) {
    const DType own = default_out_dtype(p.dtype);
    return fmt::format("out_dtype {} does not go with dtype {}: give {}{}",
                       name_of(kDTypes, p.out_dtype), to_string(p.dtype), to_string(own),
                       own == DType::fp32 ? "" : " or fp32");
  }
  if (name_of(kLayouts, p.layout).empty()) {
    return fmt::format("layout is not one of {}", accepted_layouts());
  }
  if (name_of(kModes, p.mode).empty()) {
    return fmt::format("mode is not one of {}", listed(kModes));
  }
  for (const auto& [name, value] : {std::pair{"alpha", p.alpha}, {"beta", p.beta}}) {
    const float used = static_cast<float>(value);
    if (!std::isfinite(used) || (used == 0) != (value == 0)) {
      return fmt::format("{} = {} is not a number that fp32 holds", name, value);
    }
  }
  if (p.exact_fp32 && p.dtype != DType::fp32) {
    return fmt::format("exact_fp32 does not go with dtype {}: it is for fp32", to_string(p.dtype));
  }
  if (name_of(kActivations, p.activation).empty()) {
    return fmt::format("activation is not one of {}", accepted_activations());
  }
  return wrong_gate(p);
}

Layout layout_of(bool a_k_major, bool b_k_major) {
  if (a_k_major) return b_k_major ? Layout::tn : Layout::tt;
  return b_k_major ? Layout::nn : Layout::nt;
}

// Products of m n k, and so matrices of weights.
int products(const Problem& p) { return is_mlp(p) ? 3 : is_gated(p) ? 2 : 1; }

std::string sizes(const Problem& p) {
  if (!is_mlp(p)) return fmt::format("{}x{}x{}", p.m, p.n, p.k);
  const DimensionNames names = dimension_names(p.family);
  return fmt::format("{}={} {}={} {}={}", names.m, p.m, names.k, p.k, names.n, p.n);
}

// At least `length`, and a multiple of 16 bytes.
std::int64_t aligned_line(std::int64_t length, DType dtype) {
  const std::int64_t unit = 16 / storage_bytes(dtype);
  return (length + unit - 1) / unit * unit;
}

}  // namespace

std::string_view to_string(DType dtype) { return name_of(kDTypes, dtype); }
std::string_view to_string(Layout layout) { return name_of(kLayouts, layout); }
std::string_view to_string(TimingMode mode) { return name_of(kModes, mode); }
std::optional<DType> parse_dtype(std::string_view text) { return value_named(kDTypes, text); }
std::optional<Layout> parse_layout(std::string_view text) { return value_named(kLayouts, text); }
std::optional<TimingMode> parse_timing_mode(std::string_view text) {
  return value_named(kModes, text);
}
std::string_view to_string(Activation activation) { return name_of(kActivations, activation); }
std::optional<Activation> parse_activation(std::string_view text) {
  return value_named(kActivations, text);
}
std::string accepted_activations() { return listed(kActivations); }
std::string accepted_dtypes() { return listed(kDTypes); }
std::string accepted_layouts() { return listed(kLayouts); }

Expected<std::int64_t> parse_dimension(std::string_view what, std::string_view text) {
  std::int64_t value = 0;
  bool sound = !text.empty() && text.front() != '0';
  for (const char c : text) {
    sound = sound && c >= '0' && c <= '9';
    if (!sound) break;
    value = value * 10 + (c - '0');
    sound = value <= kMaxDimension;
  }
  if (sound) return value;
  return fail(ErrorCode::bad_input, fmt::format("{}: '{}' is not a dimension: give a decimal "
                                                "number from 1 to {}, digits only",
                                                what, text, kMaxDimension));
}

DimensionNames dimension_names(std::string_view family) {
  if (family == kMlp) return {"tokens", "intermediate", "hidden"};
  return {"m", "n", "k"};
}

int storage_bytes(DType dtype) { return dtype == DType::bf16 || dtype == DType::fp16 ? 2 : 4; }

DType default_out_dtype(DType dtype) { return dtype == DType::tf32 ? DType::fp32 : dtype; }

bool a_is_k_major(Layout layout) { return layout == Layout::tn || layout == Layout::tt; }
bool b_is_k_major(Layout layout) { return layout == Layout::tn || layout == Layout::nn; }
Layout transposed(Layout layout) { return layout_of(b_is_k_major(layout), a_is_k_major(layout)); }

Served served(const Problem& p) {
  Served lie{p.layout, p.lda, p.ldb, p.ldc};
  if (p.m > 1 && p.n > 1) return lie;
  bool a_k = a_is_k_major(p.layout);
  bool b_k = b_is_k_major(p.layout);
  if (p.m == 1 && (a_k || p.lda == 1)) {
    a_k = true;
    lie.lda = aligned_line(p.k, p.dtype);
  }
  if (p.n == 1 && (b_k || p.ldb == 1)) {
    b_k = true;
    lie.ldb = aligned_line(p.k, p.dtype);
  }
  if (p.m == 1) lie.ldc = aligned_line(p.n, p.out_dtype);
  lie.layout = layout_of(a_k, b_k);
  return lie;
}

Problem as_served(Problem problem) {
  const Served lie = served(problem);
  problem.layout = lie.layout;
  problem.lda = lie.lda;
  problem.ldb = lie.ldb;
  problem.ldc = lie.ldc;
  return problem;
}

bool is_gated(const Problem& problem) { return problem.family == kGated; }
bool is_mlp(const Problem& problem) { return problem.family == kMlp; }
bool has_activation(const Problem& problem) { return is_gated(problem) || is_mlp(problem); }

Expected<Problem> checked(Problem problem) {
  std::string wrong = wrong_field(problem);
  if (wrong.empty()) wrong = settle_leading("lda", tight_lda(problem), problem.lda);
  if (wrong.empty()) wrong = settle_leading("ldb", tight_ldb(problem), problem.ldb);
  if (wrong.empty()) wrong = settle_leading("ldc", tight_ldc(problem), problem.ldc);
  if (!wrong.empty()) return fail(ErrorCode::bad_input, std::move(wrong));
  return problem;
}

int row_alignment(std::int64_t leading_dimension, DType dtype) {
  const std::int64_t row_bytes = leading_dimension * storage_bytes(dtype);
  const std::int64_t at_most_16 = row_bytes | 16;
  return static_cast<int>(at_most_16 & -at_most_16);  // elements have two bytes at least
}

bool splits_lines(const Problem& problem) {
  const Served lie = served(problem);
  const auto within = [&](std::int64_t rows, std::int64_t leading) {
    return rows > 1 && leading * storage_bytes(problem.dtype) % kL2Line != 0;
  };
  return within(a_is_k_major(lie.layout) ? problem.m : problem.k, lie.lda) ||
         within(b_is_k_major(lie.layout) ? problem.n : problem.k, lie.ldb);
}

std::string problem_key(const Problem& problem) {
  return fmt::format(
      "{} m={} n={} k={} dtype={} out={} layout={} align={}/{}/{} beta={} mode={}{}{}{}",
      problem.family, problem.m, problem.n, problem.k, to_string(problem.dtype),
      to_string(problem.out_dtype), to_string(problem.layout),
      row_alignment(problem.lda, problem.dtype), row_alignment(problem.ldb, problem.dtype),
      row_alignment(problem.ldc, problem.out_dtype), problem.beta == 0.0 ? "0" : "nonzero",
      to_string(problem.mode), splits_lines(problem) ? " splits_lines" : "",
      problem.exact_fp32 ? " exact_fp32" : "",
      has_activation(problem) ? fmt::format(" activation={}", to_string(problem.activation)) : "");
}

std::string describe(const Problem& problem) {
  std::string text =
      fmt::format("{} {} {}", sizes(problem), to_string(problem.dtype), to_string(problem.layout));
  if (problem.family != Problem{}.family) text = problem.family + ' ' + text;
  if (problem.out_dtype != default_out_dtype(problem.dtype)) {
    text += fmt::format(" out={}", to_string(problem.out_dtype));
  }
  const auto add_leading = [&text](std::string_view name, std::int64_t value, std::int64_t tight) {
    if (value != 0 && value != tight) text += fmt::format(" {}={}", name, value);
  };
  add_leading("lda", problem.lda, tight_lda(problem));
  add_leading("ldb", problem.ldb, tight_ldb(problem));
  add_leading("ldc", problem.ldc, tight_ldc(problem));
  if (problem.alpha != 1.0) text += fmt::format(" alpha={}", problem.alpha);
  if (problem.beta != 0.0) text += fmt::format(" beta={}", problem.beta);
  if (problem.mode != TimingMode::cold) text += fmt::format(" mode={}", to_string(problem.mode));
  if (problem.exact_fp32) text += " exact_fp32";
  if (problem.activation != Problem{}.activation) {
    text += fmt::format(" activation={}", to_string(problem.activation));
  }
  return text;
}

double flops(const Problem& problem) {
  return 2.0 * products(problem) * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

double compulsory_bytes(const Problem& problem) {
  const auto m = static_cast<double>(problem.m);
  const auto n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double c_times = problem.beta != 0.0 ? 2.0 : 1.0;
  return (m * k + products(problem) * k * n) * storage_bytes(problem.dtype) +
         c_times * m * (is_mlp(problem) ? k : n) * storage_bytes(problem.out_dtype);
}

KernelTraits traits_of(const Problem& problem) {
  const Served lie = served(problem);
  KernelTraits traits;
  traits.dtype = problem.dtype;
  traits.out_dtype = problem.out_dtype;
  traits.layout = lie.layout;
  traits.align_a = row_alignment(lie.lda, problem.dtype);
  traits.align_b = row_alignment(lie.ldb, problem.dtype);
  traits.align_c = row_alignment(lie.ldc, problem.out_dtype);
  traits.beta = problem.beta != 0.0;
  traits.exact_fp32 = problem.exact_fp32;
  traits.gated = is_gated(problem);
  traits.activation = problem.activation;
  return traits;
}

}  // namespace autotune

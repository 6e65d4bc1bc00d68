#include "kernels/problem.h"

#include <limits>

#include "test/unit/kernels/checked_problem.h"

namespace autotune {
namespace {

Problem square() {
  Problem problem;
  problem.m = problem.n = problem.k = 4096;
  return problem;
}

TEST_CASE("names read back as what they name") {
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32, DType::fp32}) {
    CHECK(parse_dtype(to_string(dtype)) == dtype);
    CHECK(says(accepted_dtypes(), to_string(dtype)));
  }
  for (const Layout layout : {Layout::tn, Layout::tt, Layout::nn, Layout::nt}) {
    CHECK(parse_layout(to_string(layout)) == layout);
    CHECK(says(accepted_layouts(), to_string(layout)));
  }
  for (const TimingMode mode : {TimingMode::cold, TimingMode::hot}) {
    CHECK(parse_timing_mode(to_string(mode)) == mode);
  }
  for (const Activation activation :
       {Activation::gelu_tanh, Activation::gelu_erf, Activation::silu, Activation::relu}) {
    CHECK(parse_activation(to_string(activation)) == activation);
    CHECK(says(accepted_activations(), to_string(activation)));
  }
  CHECK_FALSE(parse_activation("gelu"));
  CHECK_FALSE(parse_dtype("BF16"));
  CHECK_FALSE(parse_dtype(""));
  CHECK_FALSE(parse_layout("nt "));
  CHECK_FALSE(parse_timing_mode("warm"));
}

TEST_CASE("dimensions are plain decimal numbers") {
  CHECK(parse_dimension("m", "1") == 1);
  CHECK(parse_dimension("m", "4096") == 4096);
  CHECK(parse_dimension("m", "2147483647") == 2147483647);
}

TEST_CASE("anything else is no dimension") {
  const auto* text =
      GENERATE("", "0", "00", "010", "0x10", "1e3", "+5", "-5", " 5", "5 ", "5.", "4,096", "1_000",
               "2147483648", "1099511627776", "99999999999999999999999999", "m", "\xd9\xa1");
  CAPTURE(text);
  const auto value = parse_dimension("--m", text);
  REQUIRE_FALSE(value);
  CHECK(value.error().code == ErrorCode::bad_input);
  CHECK(says(value.error().message, "--m"));
  CHECK(says(value.error().message, "1 to 2147483647"));
}

TEST_CASE("tight leading dimensions follow from the layout") {
  Problem problem;
  problem.m = 3;
  problem.n = 5;
  problem.k = 7;
  const auto [layout, lda, ldb] = GENERATE(table<Layout, int, int>(
      {{Layout::tn, 7, 7}, {Layout::tt, 7, 5}, {Layout::nn, 3, 7}, {Layout::nt, 3, 5}}));
  problem.layout = layout;
  const Problem full = checked_or_fail(problem);
  CHECK(full.lda == lda);
  CHECK(full.ldb == ldb);
  CHECK(full.ldc == 5);
  CHECK(checked_or_fail(full) == full);
}

TEST_CASE("leading dimensions smaller than tight are refused by name") {
  Problem problem = checked_or_fail(square());
  problem.lda = 4095;
  CHECK(says(refused(problem), "lda = 4095"));
  problem.lda = 4096;
  problem.ldb = -1;
  CHECK(says(refused(problem), "ldb = -1"));
  problem.ldb = 8192;
  problem.ldc = 1;
  CHECK(says(refused(problem), "ldc = 1"));
  problem.ldc = std::int64_t{1} << 31;
  CHECK(says(refused(problem), "4096 to 2147483647"));
  problem.ldc = 4100;
  CHECK(checked_or_fail(problem).ldc == 4100);
}

TEST_CASE("dimensions out of range are refused by name") {
  const std::int64_t value =
      GENERATE(std::int64_t{0}, -1, std::int64_t{1} << 31, std::int64_t{1} << 40);
  for (const auto field : {&Problem::m, &Problem::n, &Problem::k}) {
    Problem problem = square();
    problem.*field = value;
    CHECK(says(refused(problem), "1 to 2147483647"));
  }
}

TEST_CASE("a dtype goes with its own output type or fp32") {
  constexpr DType kAll[] = {DType::bf16, DType::fp16, DType::tf32, DType::fp32};
  for (const DType dtype : kAll) {
    for (const DType out : kAll) {
      const bool sound = out == DType::fp32 || (dtype == out && out != DType::tf32);
      Problem problem = square();
      problem.dtype = dtype;
      problem.out_dtype = out;
      CAPTURE(to_string(dtype), to_string(out));
      CHECK(checked(problem).has_value() == sound);
    }
    Problem problem = square();
    problem.dtype = dtype;
    problem.out_dtype = default_out_dtype(dtype);
    CHECK(checked(problem));
  }
}

TEST_CASE("values that no enumeration has, an empty family and infinite factors are refused") {
  Problem problem = square();
  problem.family = "";
  CHECK(says(refused(problem), "family"));
  problem = square();
  problem.dtype = static_cast<DType>(9);
  CHECK(says(refused(problem), "dtype"));
  problem = square();
  problem.layout = static_cast<Layout>(9);
  CHECK(says(refused(problem), "layout"));
  problem = square();
  problem.mode = static_cast<TimingMode>(9);
  CHECK(says(refused(problem), "mode"));
  problem = square();
  problem.alpha = std::numeric_limits<double>::quiet_NaN();
  CHECK(says(refused(problem), "alpha"));
  problem = square();
  for (const double beta : {std::numeric_limits<double>::infinity(), 1e39, 1e-46}) {
    problem.beta = beta;
    CHECK(says(refused(problem), "beta"));
  }
  problem.beta = 1e-45;  // denormal in fp32
  CHECK(checked_or_fail(problem).beta == 1e-45);
}

TEST_CASE("exact_fp32 is for fp32, and marks the key, the description and the traits") {
  Problem problem = square();
  problem.exact_fp32 = true;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32}) {
    problem.dtype = dtype;
    problem.out_dtype = default_out_dtype(dtype);
    CHECK(says(refused(problem), "exact_fp32"));
  }
  problem.dtype = problem.out_dtype = DType::fp32;
  const Problem exact = checked_or_fail(problem);
  Problem free = exact;
  free.exact_fp32 = false;
  CHECK(problem_key(exact) == problem_key(free) + " exact_fp32");
  CHECK(describe(exact) == "4096x4096x4096 fp32 tn exact_fp32");
  CHECK(traits_of(exact).exact_fp32);
  CHECK_FALSE(traits_of(free).exact_fp32);
}

TEST_CASE("a gated family has an activation, twice the weights, and neither alpha nor beta") {
  Problem problem = square();
  const Problem plain = checked_or_fail(problem);
  problem.activation = Activation::silu;
  CHECK(says(refused(problem), "activation silu does not go with the family gemm"));
  problem.family = "geglu";
  const Problem gated = checked_or_fail(problem);
  CHECK(is_gated(gated));
  CHECK_FALSE(is_gated(plain));
  CHECK(problem_key(gated) ==
        "geglu m=4096 n=4096 k=4096 dtype=bf16 out=bf16 layout=tn align=16/16/16 beta=0 mode=cold "
        "activation=silu");
  CHECK(describe(gated) == "geglu 4096x4096x4096 bf16 tn activation=silu");
  CHECK(traits_of(gated).gated);
  CHECK(traits_of(gated).activation == Activation::silu);
  CHECK_FALSE(traits_of(plain).gated);
  CHECK(flops(gated) == 2 * flops(plain));
  CHECK(compulsory_bytes(gated) - compulsory_bytes(plain) == 4096.0 * 4096 * 2);

  problem.activation = Activation::gelu_tanh;
  CHECK(problem_key(checked_or_fail(problem)) != problem_key(gated));
  CHECK(describe(checked_or_fail(problem)) == "geglu 4096x4096x4096 bf16 tn");
  problem.alpha = 0.5;
  CHECK(says(refused(problem), "alpha = 0.5"));
  problem.alpha = 1;
  problem.beta = -1;
  CHECK(says(refused(problem), "beta = -1"));
  problem.beta = 0;
  problem.activation = static_cast<Activation>(9);
  CHECK(says(refused(problem), accepted_activations()));
}

TEST_CASE("row alignment is the largest of 16, 8, 4 and 2 that divides a row") {
  CHECK(row_alignment(4096, DType::bf16) == 16);
  CHECK(row_alignment(1524, DType::bf16) == 8);
  CHECK(row_alignment(1526, DType::fp16) == 4);
  CHECK(row_alignment(33, DType::fp16) == 2);
  CHECK(row_alignment(33, DType::fp32) == 4);
  CHECK(row_alignment(1524, DType::tf32) == 16);
}

TEST_CASE("rows split lines of the L2 where they are no multiple of 128 bytes apart") {
  const auto splits = [](std::int64_t m, std::int64_t lda, std::int64_t ldb, DType dtype) {
    Problem problem = square();
    problem.m = m;
    problem.k = 1000;
    problem.dtype = dtype;
    problem.out_dtype = default_out_dtype(dtype);
    problem.lda = lda;
    problem.ldb = ldb;
    return splits_lines(checked_or_fail(problem));
  };
  CHECK(splits(1000, 1000, 1024, DType::bf16));
  CHECK(splits(1000, 1024, 1000, DType::bf16));
  CHECK(splits(1000, 1056, 1024, DType::bf16));
  CHECK_FALSE(splits(1000, 1024, 1088, DType::bf16));
  CHECK_FALSE(splits(1000, 1024, 1056, DType::tf32));
  CHECK_FALSE(splits(1, 1000, 1024, DType::bf16));  // a single row begins where A does
}

TEST_CASE("the key has C's alignment as C is stored") {
  Problem wide = square();
  wide.n = wide.ldc = 4100;  // 8 bytes in bf16, 16 in fp32
  wide.out_dtype = DType::fp32;
  CHECK(problem_key(checked_or_fail(wide)).find(" align=16/16/16 ") != std::string::npos);
  wide.out_dtype = DType::bf16;
  CHECK(problem_key(checked_or_fail(wide)).find(" align=16/16/8 ") != std::string::npos);
}

TEST_CASE("the key holds what decides the best config, and only that") {
  const Problem problem = checked_or_fail(square());
  CHECK(problem_key(problem) ==
        "gemm m=4096 n=4096 k=4096 dtype=bf16 out=bf16 layout=tn align=16/16/16 beta=0 mode=cold");
  const auto key_with = [&](auto change) {
    Problem other = problem;
    change(other);
    return problem_key(checked_or_fail(other));
  };
  const std::string key = problem_key(problem);
  CHECK(key_with([](Problem& p) { p.lda = 8192; }) == key);
  CHECK(key_with([](Problem& p) { p.alpha = 2; }) == key);
  CHECK(key_with([](Problem& p) { p.lda = 4097; }) != key);
  CHECK(key_with([](Problem& p) { p.lda = 4104; }) == key + " splits_lines");
  CHECK(key_with([](Problem& p) { p.ldb = 4128; }) == key + " splits_lines");
  CHECK(key_with([](Problem& p) { p.ldc = 4104; }) == key);
  CHECK(key_with([](Problem& p) { p.beta = 1; }) != key);
  CHECK(key_with([](Problem& p) { p.beta = 1; }) == key_with([](Problem& p) { p.beta = -2; }));
  CHECK(key_with([](Problem& p) { p.out_dtype = DType::fp32; }) != key);
  CHECK(key_with([](Problem& p) { p.layout = Layout::nt; }) != key);
  CHECK(key_with([](Problem& p) { p.mode = TimingMode::hot; }) != key);
  CHECK(key_with([](Problem& p) { p.k = 4000; }) != key);
}

TEST_CASE("a single row or column is served as contiguous along k, and as aligned") {
  const auto served_with = [](auto change) {
    Problem problem = square();
    problem.k = 4097;
    change(problem);
    problem = checked_or_fail(problem);
    const Problem served = as_served(problem);
    CHECK(as_served(served) == served);
    CHECK(traits_of(served) == traits_of(problem));
    const std::string layout = " layout=" + std::string(to_string(problem.layout)) + " ";
    CHECK(problem_key(problem).find(layout) != std::string::npos);
    return served;
  };
  const auto [layout, of_row, of_column] =
      GENERATE(table<Layout, Layout, Layout>({{Layout::tn, Layout::tn, Layout::tn},
                                              {Layout::tt, Layout::tt, Layout::tn},
                                              {Layout::nn, Layout::tn, Layout::nn},
                                              {Layout::nt, Layout::tt, Layout::nn}}));
  const Layout asked = layout;
  const Problem row = served_with([&](Problem& p) { p.m = 1, p.layout = asked; });
  CHECK(row.layout == of_row);
  CHECK(row.lda == 4104);
  CHECK(row.ldb == (b_is_k_major(layout) ? 4097 : 4096));
  CHECK(traits_of(row).align_a == 16);
  const Problem column = served_with([&](Problem& p) { p.n = 1, p.layout = asked; });
  CHECK(column.layout == of_column);
  CHECK(column.ldb == 4104);
  CHECK(column.lda == (a_is_k_major(layout) ? 4097 : 4096));
  CHECK(column.ldc == 1);
  const Problem both = served_with([&](Problem& p) { p.m = p.n = 1, p.layout = asked; });
  CHECK(both.layout == Layout::tn);
  CHECK(both.ldc == 8);
}

TEST_CASE("what lies apart is served as it lies") {
  Problem apart = square();
  apart.m = 1;
  apart.layout = Layout::nt;
  apart.lda = 3;  // A's elements are three apart
  CHECK(as_served(checked_or_fail(apart)).layout == Layout::nt);
  CHECK(as_served(checked_or_fail(apart)).lda == 3);
  const Problem whole = checked_or_fail(square());
  CHECK(as_served(whole) == whole);
}

TEST_CASE("a description is short and adds only what is unusual") {
  CHECK(describe(square()) == "4096x4096x4096 bf16 tn");
  CHECK(describe(checked_or_fail(square())) == "4096x4096x4096 bf16 tn");
  Problem problem = square();
  problem.family = "conv";
  problem.out_dtype = DType::fp32;
  problem.lda = 5000;
  problem.beta = 0.5;
  problem.mode = TimingMode::hot;
  CHECK(describe(problem) == "conv 4096x4096x4096 bf16 tn out=fp32 lda=5000 beta=0.5 mode=hot");
}

TEST_CASE("operations and compulsory bytes") {
  Problem problem;
  problem.m = 10;
  problem.n = 20;
  problem.k = 30;
  problem.out_dtype = DType::fp32;
  CHECK(flops(problem) == 12000.0);
  CHECK(compulsory_bytes(problem) == (300 + 600) * 2.0 + 200 * 4.0);
  problem.beta = 1;
  CHECK(compulsory_bytes(problem) == (300 + 600) * 2.0 + 2 * 200 * 4.0);
}

TEST_CASE("traits carry the alignment of each operand's rows") {
  Problem problem;
  problem.m = 100;
  problem.n = 1524;
  problem.k = 33;
  problem.out_dtype = DType::fp32;
  const KernelTraits traits = traits_of(checked_or_fail(problem));
  CHECK(int{traits.align_a} == 2);
  CHECK(int{traits.align_b} == 2);
  CHECK(int{traits.align_c} == 16);
}

}  // namespace
}  // namespace autotune

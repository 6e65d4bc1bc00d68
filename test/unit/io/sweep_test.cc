#include "autotune/io/sweep.h"

#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const Family& gemm() { return *find_family("gemm"); }

Config config(const char* text) {
  const auto parsed = parse_config(text, gemm());
  REQUIRE(parsed);
  return *parsed;
}

Sweep example() {
  Sweep sweep;
  sweep.device = "NVIDIA H200";
  Problem problem;
  problem.m = 100;
  problem.n = 1524;
  problem.k = 512;
  problem.beta = 0.5;
  problem.layout = Layout::tt;
  sweep.problem = checked(problem).value();
  sweep.space = "gemm_space.yaml";
  sweep.reference = config("mma:block_m=64");
  sweep.runs = {{"2026-01-31", "13.0", "nvrtc 13.0", 7}};
  sweep.rows = {{config("mma:block_m=64"), Outcome::ok, 1.0012, 21.5},
                {config("mma:block_m=32"), Outcome::spilled, 0, 0},
                {config("simt:block_m=32"), Outcome::ok, 3.25, 22.5},
                {config("simt:block_m=64"), Outcome::ok, 2.5, 20.5}};
  return sweep;
}

void check_refused(std::string text, const std::string& from, const std::string& to,
                   const std::string& part) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const auto parsed = parse_sweep(text, "x.sweep");
  INFO(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().code == ErrorCode::bad_input);
  INFO(parsed.error().message);
  CHECK(parsed.error().message.find("x.sweep:") == 0);
  CHECK(parsed.error().message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a sweep is read back as it was written") {
  const Sweep sweep = example();
  const auto parsed = parse_sweep(sweep_text(sweep), "x.sweep");
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  CHECK(parsed->device == sweep.device);
  CHECK(parsed->problem == sweep.problem);
  CHECK(parsed->space == sweep.space);
  CHECK(parsed->reference == sweep.reference);
  REQUIRE(parsed->runs.size() == 1);
  CHECK(parsed->runs[0].compiler == "nvrtc 13.0");
  CHECK(parsed->runs[0].driver == "13.0");
  CHECK(parsed->runs[0].seed == 7);
  REQUIRE(parsed->rows.size() == sweep.rows.size());
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    CHECK(parsed->rows[i].config == sweep.rows[i].config);
    CHECK(parsed->rows[i].outcome == sweep.rows[i].outcome);
    CHECK(parsed->rows[i].ratio == Approx(sweep.rows[i].ratio));
    CHECK(parsed->rows[i].reference_us == Approx(sweep.rows[i].reference_us));
  }
  CHECK(parsed->reference_us() == Approx(21.5));
}

TEST_CASE("a sweep whose last line was cut off is read without it") {
  const std::string text = sweep_text(example());
  const std::size_t rows = example().rows.size();
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  for (std::size_t size = last; size <= text.size(); ++size) {
    const auto parsed = parse_sweep(text.substr(0, size), "x.sweep");
    INFO(text.substr(last, size - last));
    REQUIRE(parsed);
    CHECK(parsed->rows.size() == (size < text.size() ? rows - 1 : rows));
  }
}

TEST_CASE("a sweep file that does not make sense is refused at its line") {
  const std::string text = sweep_text(example());
  check_refused(text, "sweep 1", "sweep 2", "first line");
  check_refused(text, "k=512", "k=0", "no problem");
  check_refused(text, "family=gemm", "family=conv", "family");
  check_refused(text, "1.0012", "-1", "positive");
  check_refused(text, "1.0012", "inf", "positive");
  check_refused(text, "spilled", "spilt", "outcome");
  check_refused(text, "kernel simt", "kernel sint", "sint");
  check_refused(text, "kernel mma block_m,", "kernel mma blok_m,", "blok_m");
  check_refused(text, "mma 32,", "mma 64,", "stood before");
  check_refused(text, "reference mma:block_m", "reference mma:blok_m", "blok_m");
}

TEST_CASE("a sweep of an exact fp32 problem reads back as one") {
  Sweep sweep = example();
  sweep.problem.dtype = sweep.problem.out_dtype = DType::fp32;
  sweep.problem.exact_fp32 = true;
  const auto back = parse_sweep(sweep_text(sweep), "x.sweep");
  REQUIRE(back);
  CHECK(back->problem == sweep.problem);
}

TEST_CASE("a sweep of a gated problem reads back as one") {
  Sweep sweep = example();
  sweep.problem.family = "geglu";
  sweep.problem.beta = 0;
  sweep.problem.activation = Activation::relu;
  const auto back = parse_sweep(sweep_text(sweep), "x.sweep");
  REQUIRE(back);
  CHECK(back->problem == sweep.problem);
  check_refused(sweep_text(sweep), "activation=relu", "activation=step", "problem");
}

TEST_CASE("a sweep's parameters are named by its file") {
  const auto parsed = parse_sweep(
      "sweep 1\ndevice NVIDIA H200\nproblem family=gemm m=1 n=2 k=3 lda=3 ldb=3 ldc=2 dtype=bf16 "
      "out_dtype=bf16 layout=tn alpha=1 beta=0 mode=cold\nreference mma:block_m=64\n"
      "kernel mma block_n,block_m\nmma 32,64 1.5 20\n",
      "x.sweep");
  REQUIRE(parsed);
  CHECK(parsed->rows.at(0).config == config("mma:block_m=64,block_n=32"));
}

TEST_CASE("a problem's file is named after what is unusual about it") {
  Problem problem;
  problem.m = 100;
  problem.n = 1524;
  problem.k = 512;
  CHECK(sweep_file_name(checked(problem).value()) == "gemm_100x1524x512_bf16_tn.sweep");
  CHECK(sweep_file_name(example().problem) != "gemm_100x1524x512_bf16_tt.sweep");
}

}  // namespace autotune::io

#include "autotune/io/builtin.h"
#include "kernels/problem.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const std::string kHead = "device: NVIDIA H200\nwinners:\n";
const std::string kProblem = "  - {family: gemm, m: 4096, n: 4096, k: 4096, ";

Expected<TunedFile> parse(const std::string& text) { return parse_tuned(text, "t.yaml"); }

std::string error_of(const std::string& text) {
  const auto file = parse(text);
  REQUIRE(is_bad_input(file));
  return file.error().message;
}

TEST_CASE("a tuned file's winners come with checked problems and canonical configs") {
  const auto file =
      parse(kHead + kProblem + "dtype: tf32, config: 'mma:block_m=128', " + "median_us: 175.5}\n" +
            kProblem + "layout: nt, mode: hot, config: 'mma:stages=3', median_us: 20}\n");
  REQUIRE(file);
  CHECK(file->device == "NVIDIA H200");
  REQUIRE(file->entries.size() == 2);
  const TunedEntry& first = file->entries[0];
  CHECK(first.problem.dtype == DType::tf32);
  CHECK(first.problem.out_dtype == DType::fp32);
  CHECK(first.problem.lda == 4096);
  CHECK(first.median_us == 175.5);
  CHECK(first.config.starts_with("mma:block_m=128,block_n="));
  const auto config = parse_config(first.config, *find_family("gemm"));
  REQUIRE(config);
  CHECK(to_string(*config) == first.config);
  CHECK(file->entries[1].problem.layout == Layout::nt);
  CHECK(file->entries[1].problem.mode == TimingMode::hot);
}

TEST_CASE("an MLP's winner is a config of each of its kernels") {
  const std::string mlp = "  - {family: geglu_mlp, tokens: 100, hidden: 512, intermediate: 1524, ";
  const auto file = parse(kHead + mlp + "config: 'mma:stages=3 + gemv', median_us: 20}\n");
  INFO(message_of(file));
  REQUIRE(file);
  const TunedEntry& entry = file->entries.at(0);
  CHECK(entry.problem.m == 100);
  CHECK(entry.problem.n == 1524);
  CHECK(entry.problem.k == 512);
  CHECK_THAT(entry.config, HasText(" + gemv:block_m="));
  CHECK(error_of(kHead + mlp + "config: mma, median_us: 20}\n")
            .starts_with("t.yaml:3: config: 'mma': a config of geglu_mlp is two"));
  CHECK_THAT(error_of(kHead + mlp + "config: 'gemv + mma', median_us: 20}\n"),
             HasText("family geglu has no kernel 'gemv'"));
  CHECK_THAT(error_of(kHead + "  - {family: geglu_mlp, m: 1, n: 2, k: 3, config: 'mma + mma', " +
                      "median_us: 20}\n"),
             HasText("t.yaml:3: unknown key 'm' in a winner"));
}

TEST_CASE("mistakes in a tuned file name file and line") {
  CHECK_THAT(error_of(kHead + kProblem + "config: 'mma:nothing=1', median_us: 1}\n"),
             Catch::Matchers::StartsWith("t.yaml:3: config: "));
  CHECK_THAT(error_of(kHead + kProblem + "config: 'warp:stages=1', median_us: 1}\n"),
             Catch::Matchers::StartsWith("t.yaml:3: config: "));
  CHECK_THAT(error_of(kHead + kProblem + "config: mma, median_us: 0}\n"),
             Catch::Matchers::StartsWith("t.yaml:3: median_us: expected a number"));
  CHECK_THAT(error_of(kHead + kProblem + "config: mma, time: 3}\n"),
             Catch::Matchers::StartsWith("t.yaml:3: unknown key 'time' in a winner"));
  CHECK_THAT(error_of("winners:\n" + kProblem + "config: mma, median_us: 1}\n"),
             HasText("lacks the key 'device'"));
  CHECK_THAT(error_of("device: X\nwinners: []\n"), HasText("at least one item"));
  const std::string winner = kProblem + "config: 'mma:stages=3', median_us: 1}\n";
  CHECK(error_of(kHead + winner + winner) ==
        "t.yaml:4: a second winner for the problem of line 3; keep the faster");
}

TEST_CASE("built-in winners belong to known GPUs and read back") {
  for (const BuiltinTuned& entry : tuned_entries()) {
    INFO(entry.config);
    CHECK(find_device(entry.device) != nullptr);
    const Family* family = find_family(entry.problem.family);
    REQUIRE(family != nullptr);
    const auto config = parse_config(entry.config, *family);
    REQUIRE(config);
    CHECK(to_string(*config) == entry.config);
    const auto problem = checked(entry.problem);
    REQUIRE(problem);
    CHECK(*problem == entry.problem);
    CHECK(entry.median_us > 0);
  }
}

}  // namespace
}  // namespace autotune::io

#include "autotune/io/builtin.h"
#include "autotune/io/yaml_node.h"
#include "kernels/problem.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const std::string kHead = "family: gemm\ndtype: bf16\nlayout: tn\nproblems:\n";

Expected<Suite> parse(const std::string& text, const SuiteOverrides& overrides = {}) {
  return parse_suite(text, "dir/mine.yaml", overrides);
}

std::string error_of(const std::string& text) {
  const auto suite = parse(text);
  REQUIRE(is_bad_input(suite));
  return suite.error().message;
}

TEST_CASE("a suite's problem, or all of them, may ask for exact fp32") {
  const auto one = parse(kHead + "  - {m: 1, n: 2, k: 3, dtype: fp32, exact_fp32: true}\n" +
                         "  - {m: 1, n: 2, k: 3, dtype: fp32, exact_fp32: false}\n");
  REQUIRE(one);
  CHECK(one->entries[0].problem.exact_fp32);
  CHECK_FALSE(one->entries[1].problem.exact_fp32);
  const auto all =
      parse("family: gemm\ndtype: fp32\nexact_fp32: true\nproblems:\n  - {m: 1, n: 2, k: 3}\n");
  REQUIRE(all);
  CHECK(all->entries[0].problem.exact_fp32);
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2, k: 3, dtype: fp32, exact_fp32: 1}\n"),
             HasText("exact_fp32: expected true, false"));
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2, k: 3, exact_fp32: true}\n"),
             HasText("exact_fp32 does not go with dtype bf16"));
}

TEST_CASE("a suite of a gated family names activations") {
  const std::string head = "family: geglu\nactivation: silu\nproblems:\n";
  const auto suite =
      parse(head + "  - {m: 1, n: 2, k: 3}\n" + "  - {m: 1, n: 2, k: 3, activation: relu}\n");
  REQUIRE(suite);
  CHECK(suite->entries[0].problem.activation == Activation::silu);
  CHECK(suite->entries[1].problem.activation == Activation::relu);
  CHECK_THAT(error_of(head + "  - {m: 1, n: 2, k: 3, activation: gelu}\n"),
             HasText("activation: expected gelu_tanh"));
  CHECK_THAT(error_of(head + "  - {m: 1, n: 2, k: 3, beta: 1}\n"), HasText("beta = 1"));
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2, k: 3, activation: silu}\n"),
             HasText("does not go with the family gemm"));
}

TEST_CASE("a suite's problems come checked, in order") {
  const auto suite = parse(kHead +
                           "  - {m: 100, n: 512, k: 1524}\n"
                           "  - {m: 7, n: 8, k: 9, dtype: tf32, layout: nt, beta: 0.5, mode: hot,"
                           " rtol: 1.0e-4, atol: 2.0e-4}\n");
  REQUIRE(suite);
  CHECK(suite->name == "mine");
  CHECK(suite->family == "gemm");
  REQUIRE(suite->entries.size() == 2);
  const Problem& first = suite->entries[0].problem;
  CHECK(first.m == 100);
  CHECK(first.n == 512);
  CHECK(first.k == 1524);
  CHECK(first.lda == 1524);
  CHECK(first.dtype == DType::bf16);
  CHECK(suite->entries[0].rtol == 0);
  const SuiteEntry& second = suite->entries[1];
  CHECK(second.problem.dtype == DType::tf32);
  CHECK(second.problem.out_dtype == DType::fp32);
  CHECK(second.problem.layout == Layout::nt);
  CHECK(second.problem.beta == 0.5);
  CHECK(second.problem.mode == TimingMode::hot);
  CHECK(second.rtol == 1e-4);
  CHECK(second.atol == 2e-4);
}

TEST_CASE("lists stand for one problem per value") {
  const auto suite = parse(kHead + "  - {m: [1, 4], n: 4096, k: [8, 16, 32]}\n");
  REQUIRE(suite);
  REQUIRE(suite->entries.size() == 6);
  CHECK(suite->entries[0].problem.m == 1);
  CHECK(suite->entries[2].problem.k == 32);
  CHECK(suite->entries[3].problem.m == 4);
  CHECK(suite->entries[3].problem.k == 8);
}

TEST_CASE("lists cannot multiply into millions of problems") {
  std::string list = "[1";
  for (int i = 2; i <= 400; ++i) list += ", " + std::to_string(i);
  list += "]";
  CHECK_THAT(error_of(kHead + "  - {m: " + list + ", n: " + list + ", k: " + list + "}\n"),
             HasText("mine.yaml:5: more than 100000 problems"));
}

TEST_CASE("overrides replace the file's defaults, not a problem's own values") {
  SuiteOverrides overrides;
  overrides.dtype = DType::fp16;
  overrides.layout = Layout::tt;
  const auto suite = parse(kHead +
                               "  - {m: 1, n: 2, k: 3}\n"
                               "  - {m: 1, n: 2, k: 3, dtype: fp32, layout: nn}\n",
                           overrides);
  REQUIRE(suite);
  CHECK(suite->entries[0].problem.dtype == DType::fp16);
  CHECK(suite->entries[0].problem.out_dtype == DType::fp16);
  CHECK(suite->entries[0].problem.layout == Layout::tt);
  CHECK(suite->entries[1].problem.dtype == DType::fp32);
  CHECK(suite->entries[1].problem.layout == Layout::nn);
}

TEST_CASE("mistakes in a suite name file, line and what is accepted") {
  CHECK(error_of(kHead + "  - {m: 1, n: 2, kk: 3}\n")
            .starts_with("dir/mine.yaml:5: unknown key 'kk' in a problem; accepted: m, n, k, "));
  CHECK(error_of("family: gemm\nprolbems: []\n") ==
        "dir/mine.yaml:2: unknown key 'prolbems' in the suite; accepted: family, dtype, layout, "
        "out_dtype, mode, exact_fp32, activation, problems");
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2}\n"), HasText("lacks the key 'k'"));
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2, k: 3}\n  - {m: 1, n: 2, k: 3, n: 4}\n"),
             HasText("mine.yaml:6: duplicate key 'n'"));
  CHECK_THAT(error_of(kHead + "  - {m: 1, n: 2, k: 3, dtype: int8}\n"),
             HasText("dtype: expected bf16, fp16, tf32, fp32, found 'int8'"));
  CHECK_THAT(error_of(kHead + "  - [1, 2, 3]\n"), HasText("must be a map"));
  CHECK_THAT(error_of("family: gemm\nproblems: []\n"), HasText("a list with at least one item"));
  CHECK_THAT(error_of(kHead + "  - {m: 64, n: 64, k: 64, lda: 63}\n"),
             Catch::Matchers::StartsWith("dir/mine.yaml:5: "));
  for (const char* m : {"0", "-4", "1099511627776", "1e3", "010", "'4'"}) {
    INFO(m);
    CHECK_THAT(error_of(kHead + "  - {n: 2, k: 3, m: " + m + "}\n"),
               Catch::Matchers::StartsWith("dir/mine.yaml:5: m: "));
  }
}

TEST_CASE("an unknown family lists the known ones") {
  const std::string message = error_of("family: conv\nproblems:\n  - {m: 1}\n");
  CHECK_THAT(message, Catch::Matchers::StartsWith("dir/mine.yaml:1: family: 'conv' is not known"));
  CHECK_THAT(message, HasText("gemm"));
}

TEST_CASE("every built-in suite loads by name") {
  for (const BuiltinText& text : suite_texts()) {
    INFO(text.name);
    CHECK(std::string(text.text) == config_text("suites/" + std::string(text.name) + ".yaml"));
    const auto suite = load_suite(std::string(text.name), {});
    REQUIRE(suite);
    CHECK(suite->name == text.name);
    CHECK_FALSE(suite->entries.empty());
  }
  CHECK(suite_texts().size() >= 4);
  const auto thin = load_suite("gemm_thin", {});
  REQUIRE(thin);
  CHECK(thin->entries.size() == 24);
}

TEST_CASE("a suite is found as a file, too, and an unknown name lists the built-in ones") {
  const auto file = load_suite((source_dir() / "configs/suites/gemm.yaml").string(), {});
  REQUIRE(file);
  CHECK(file->entries.size() == 14);
  const auto unknown = load_suite("gemmm", {});
  REQUIRE(is_bad_input(unknown));
  CHECK_THAT(unknown.error().message, HasText("'gemmm' is not a built-in suite"));
  CHECK_THAT(unknown.error().message, HasText("gemm_thin"));
}

TEST_CASE("a suite of MLPs gives tokens, hidden and intermediate") {
  const std::string head = "family: geglu_mlp\nactivation: silu\nproblems:\n";
  const auto suite =
      parse(head + "  - {tokens: [1, 128], hidden: 64, intermediate: [256, 512, 1024]}\n" +
            "  - {tokens: 7, hidden: 8, intermediate: 9, activation: relu, dtype: tf32}\n");
  INFO(message_of(suite));
  REQUIRE(suite);
  REQUIRE(suite->entries.size() == 7);
  const Problem& third = suite->entries[2].problem;
  CHECK(third.family == "geglu_mlp");
  CHECK(third.m == 1);
  CHECK(third.n == 1024);
  CHECK(third.k == 64);
  CHECK(third.ldc == 64);
  CHECK(third.activation == Activation::silu);
  CHECK(suite->entries[3].problem.m == 128);
  const Problem& last = suite->entries[6].problem;
  CHECK(last.n == 9);
  CHECK(last.activation == Activation::relu);
  CHECK(last.out_dtype == DType::fp32);

  CHECK(error_of(head + "  - {m: 1, n: 2, k: 3}\n")
            .starts_with("dir/mine.yaml:4: unknown key 'm' in a problem; accepted: tokens, "));
  CHECK_THAT(error_of(head + "  - {tokens: 1, hidden: 2}\n"),
             HasText("lacks the key 'intermediate'"));
  CHECK_THAT(error_of(head + "  - {tokens: 1, hidden: 0, intermediate: 2}\n"),
             HasText("mine.yaml:4: hidden: "));
  CHECK_THAT(error_of(kHead + "  - {tokens: 1, hidden: 2, intermediate: 3}\n"),
             HasText("unknown key 'tokens'"));
}

TEST_CASE("the GEGLU-MLP suite is well-formed") {
  const auto root = parse_yaml(config_text("suites/geglu_mlp.yaml"), "geglu_mlp.yaml");
  REQUIRE(root);
  REQUIRE(root->keys.back().text == "problems");
  REQUIRE(root->items.back().items.size() == 7);
  for (const YamlNode& problem : root->items.back().items) {
    REQUIRE(problem.keys.size() >= 3);
    CHECK(problem.keys[0].text == "tokens");
    CHECK(problem.keys[1].text == "hidden");
    CHECK(problem.keys[2].text == "intermediate");
  }
  const auto suite = load_suite("geglu_mlp", {});
  REQUIRE(suite);
  REQUIRE(suite->entries.size() == 7);
  const SuiteEntry& second = suite->entries[1];
  CHECK(describe(second.problem) == "geglu_mlp tokens=100 hidden=512 intermediate=1524 fp32 tt");
  CHECK(second.rtol == 1e-4);
}

}  // namespace
}  // namespace autotune::io

// Problems of the family geglu_mlp.
#include <string>
#include <utility>

#include "test/unit/kernels/checked_problem.h"

namespace autotune {
namespace {

// 100 tokens, 512 hidden, 1524 intermediate.
Problem mlp() {
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = 100;
  problem.n = 1524;
  problem.k = 512;
  return problem;
}

TEST_CASE("an MLP's dimensions have names of their own") {
  const DimensionNames plain = dimension_names("gemm");
  CHECK(std::string(plain.m) + plain.n + plain.k == "mnk");
  const DimensionNames own = dimension_names("geglu_mlp");
  CHECK(std::string(own.m) == "tokens");
  CHECK(std::string(own.n) == "intermediate");
  CHECK(std::string(own.k) == "hidden");
  for (const auto& [name, field] :
       {std::pair{"tokens", &Problem::m}, {"intermediate", &Problem::n}, {"hidden", &Problem::k}}) {
    Problem problem = mlp();
    problem.*field = 0;
    CHECK(refused(problem) == std::string(name) + " = 0 is out of range: give 1 to 2147483647");
  }
}

TEST_CASE("an MLP has an activation, and neither alpha nor beta") {
  CHECK(is_mlp(mlp()));
  CHECK(has_activation(mlp()));
  CHECK_FALSE(is_gated(mlp()));
  CHECK_FALSE(is_mlp(Problem{}));
  Problem problem = mlp();
  problem.activation = Activation::relu;
  CHECK(checked_or_fail(problem).activation == Activation::relu);
  problem.beta = 1;
  CHECK(says(refused(problem), "beta = 1 does not go with the family geglu_mlp"));
  problem.beta = 0;
  problem.alpha = 2;
  CHECK(says(refused(problem), "alpha = 2 does not go with the family geglu_mlp"));
}

TEST_CASE("the rows of an MLP's output are as long as those of its input") {
  const Problem whole = checked_or_fail(mlp());
  CHECK(whole.lda == 512);
  CHECK(whole.ldb == 512);
  CHECK(whole.ldc == 512);
  Problem problem = mlp();
  problem.layout = Layout::tt;
  CHECK(checked_or_fail(problem).ldb == 1524);
  problem.ldc = 511;
  CHECK(says(refused(problem), "ldc = 511"));
}

TEST_CASE("an MLP's key and description") {
  Problem problem = checked_or_fail(mlp());
  CHECK(describe(problem) == "geglu_mlp tokens=100 hidden=512 intermediate=1524 bf16 tn");
  CHECK(problem_key(problem) ==
        "geglu_mlp m=100 n=1524 k=512 dtype=bf16 out=bf16 layout=tn align=16/16/16 beta=0 "
        "mode=cold activation=gelu_tanh");
  problem.activation = Activation::silu;
  problem.ldc = 514;
  CHECK(describe(problem) ==
        "geglu_mlp tokens=100 hidden=512 intermediate=1524 bf16 tn ldc=514 activation=silu");
  CHECK(says(problem_key(problem), "align=16/16/4 beta=0 mode=cold activation=silu"));
}

TEST_CASE("an MLP is three products, and its intermediate need not cross DRAM") {
  Problem problem = mlp();
  problem.m = 10;
  problem.n = 20;
  problem.k = 30;
  problem.out_dtype = DType::fp32;
  CHECK(flops(problem) == 6 * 6000.0);
  CHECK(compulsory_bytes(problem) == (300 + 3 * 600) * 2.0 + 300 * 4.0);
}

}  // namespace
}  // namespace autotune

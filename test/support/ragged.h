// Products whose rows begin anywhere, in every way that mma_bulk brings and stores them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "test/support/problems.h"

namespace autotune::test {

inline std::vector<std::pair<Problem, Config>> ragged_products() {
  const std::vector<std::string> configs = {
      "block_m=16,block_n=16,block_k=64,stages=1,warps_m=1,warps_n=1,warps_k=1,split_k=1",
      "block_m=32,block_n=32,block_k=64,stages=2,warps_m=2,warps_n=2,warps_k=1,split_k=2",
      "block_m=32,block_n=64,block_k=64,stages=3,warps_m=1,warps_n=1,warps_k=4,split_k=4",
      "block_m=64,block_n=128,block_k=128,stages=1,warps_m=1,warps_n=2,warps_k=2,split_k=8",
      "block_m=128,block_n=64,block_k=64,stages=2,warps_m=2,warps_n=1,warps_k=2,split_k=1",
      "block_m=48,block_n=48,block_k=192,stages=1,warps_m=1,warps_n=2,warps_k=2,split_k=1"};
  // In 16-bit types rows begin on 8, 4 and 2 bytes; a single column is one element of each row.
  // Rows no longer than block_k come as runs.
  struct Size {
    int m;
    int n;
    int k;
  };
  constexpr Size kSizes[] = {{100, 72, 300}, {33, 65, 202}, {67, 35, 329},
                             {70, 67, 63},   {130, 9, 7},   {5, 3, 1}};
  std::vector<std::pair<Problem, Config>> all;
  int turn = 0;
  for (const std::string& text : configs) {
    const Config config = parse_config("mma_bulk:" + text, *find_family("gemm")).value();
    for (const Size& size : kSizes) {
      for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32}) {
        Problem problem = gemm(size.m, size.n, size.k, dtype, Layout::tn);
        ++turn;
        if (turn % 2 == 0) problem.lda = (size.k + 7) / 8 * 8;  // only B's begin anywhere
        if (turn % 4 == 1) problem.ldb = size.k + 1;
        if (turn % 5 == 0) problem.ldc = size.n + turn % 3;
        if (turn % 7 == 0) problem.beta = 0.5;
        if (turn % 11 == 0) problem.alpha = 2;
        problem = checked(problem).value();
        const KernelTraits traits = traits_of(problem);
        if (traits.align_a == 16 && traits.align_b == 16) continue;
        all.emplace_back(problem, config);
      }
    }
  }
  return all;
}

}  // namespace autotune::test

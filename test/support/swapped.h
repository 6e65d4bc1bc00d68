// Products of C's transpose in every way that their kernel stores them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "test/support/problems.h"

namespace autotune::test {

inline std::vector<std::pair<Problem, Config>> swapped_products() {
  const std::string alone = ",pingpong=0,cluster_m=1,cluster_n=1,split_k=1";
  const std::vector<std::string> configs = {
      "block_m=64,block_n=8,block_k=64,stages=3,consumers=1" + alone,
      "block_m=64,block_n=24,block_k=128,stages=3,consumers=1" + alone,   // one matrix left over
      "block_m=128,block_n=128,block_k=64,stages=3,consumers=2" + alone,  // two stores of a warp
      "block_m=128,block_n=104,block_k=64,stages=3,consumers=1" + alone,  // one over the other
      "block_m=64,block_n=64,block_k=128,stages=7,consumers=1" + alone,   // through the ring
      "block_m=64,block_n=16,block_k=64,stages=3,consumers=2,pingpong=1,cluster_m=1,cluster_n=1,"
      "split_k=1",
      "block_m=64,block_n=32,block_k=64,stages=3,consumers=1,pingpong=0,cluster_m=2,cluster_n=1,"
      "split_k=1",
      "block_m=64,block_n=40,block_k=64,stages=3,consumers=1,pingpong=0,cluster_m=4,cluster_n=1,"
      "split_k=1",
      "block_m=192,block_n=72,block_k=64,stages=3,consumers=3" + alone,
      "block_m=128,block_n=40,block_k=64,stages=3,consumers=2,pingpong=1,cluster_m=2,cluster_n=2,"
      "split_k=1",
      "block_m=64,block_n=32,block_k=64,stages=3,consumers=1,pingpong=0,cluster_m=1,cluster_n=1,"
      "split_k=4",
      "block_m=64,block_n=32,block_k=64,stages=3,consumers=1,pingpong=0,cluster_m=2,cluster_n=1,"
      "split_k=3"};
  std::vector<std::pair<Problem, Config>> all;
  for (const std::string& text : configs) {
    const Config config = parse_config("wgmma_swap:" + text, *find_family("gemm")).value();
    for (const int m : {1, 20, 100}) {
      for (const int n : {200, 204, 203}) {  // rows of C that end on 16 bytes, within, anywhere
        Problem problem = gemm(m, n, 264, m == 20 ? DType::fp16 : DType::bf16, Layout::tn);
        if (n % 2 == 0) problem.ldc = 208;
        if (m == 100) problem.beta = n == 204 ? 0.5 : 0;
        // Where C is read, no store may lie over another.
        const bool over = text.find("block_n=104") != std::string::npos;
        if (over) problem.beta = 0;
        all.emplace_back(problem, config);
      }
    }
    for (const Layout layout : {Layout::tt, Layout::nn, Layout::nt}) {
      Problem problem = gemm(100, 203, 264, DType::bf16, layout);
      problem.lda = a_is_k_major(layout) ? 264 : 104;
      problem.ldb = b_is_k_major(layout) ? 264 : 208;
      all.emplace_back(problem, config);
      problem.m = 1;
      all.emplace_back(problem, config);
      problem.m = 100;
      problem.n = 1;
      all.emplace_back(problem, config);
    }
  }
  return all;
}

}  // namespace autotune::test

// Products whose last tiles along m and n are not whole, in every layout, gated and not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "test/support/problems.h"

namespace autotune::test {

inline std::vector<std::pair<Problem, Config>> edge_products() {
  const std::vector<std::string> blocks = {"cluster_m=1,cluster_n=1", "cluster_m=2,cluster_n=1",
                                           "cluster_m=1,cluster_n=2"};
  std::vector<std::pair<Problem, Config>> all;
  const auto add = [&](const std::string& text, const Problem& problem) {
    all.emplace_back(problem, parse_config(text, *find_family(problem.family)).value());
  };
  for (const Layout layout : kAllLayouts) {
    for (const std::string& each : blocks) {
      const std::string rest =
          "block_n=128,block_k=64,stages=2,consumers=1,pingpong=0,split_k=1," + each;
      // Of the last tile's two slabs of 64, the second is outside; then it has eight columns.
      for (const int size : {176, 200}) {
        add("wgmma:block_m=64," + rest,
            geglu(size, size, 136, DType::bf16, layout, Activation::silu));
        add("wgmma:block_m=128," + rest, gemm(size, size, 136, DType::fp16, layout));
        add("wgmma_swap:block_m=128," + rest, gemm(size, size, 136, DType::bf16, layout));
      }
    }
  }
  return all;
}

}  // namespace autotune::test

// Products whose rows begin anywhere, in every way that kernels for them bring and store them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "test/support/problems.h"

namespace autotune::test {

// In 16-bit types rows along k begin on 8, 4 and 2 bytes; a single column is one element of each
// row, and the last size's rows are longer than a warp packs at once.
struct RaggedSize {
  int m;
  int n;
  int k;
};
inline constexpr RaggedSize kRaggedSizes[] = {{100, 72, 300}, {33, 65, 202}, {67, 35, 329},
                                              {70, 67, 63},   {130, 9, 7},   {5, 3, 1},
                                              {70, 75, 2101}};

// The `turn`-th variant of such a product, or nothing where both operands begin on 16 bytes.
inline std::optional<Problem> ragged_product(const RaggedSize& size, DType dtype, Layout layout,
                                             int turn) {
  Problem problem = gemm(size.m, size.n, size.k, dtype, layout);
  const int row_a = a_is_k_major(layout) ? size.k : size.m;
  const int row_b = b_is_k_major(layout) ? size.k : size.n;
  if (turn % 2 == 0) problem.lda = (row_a + 7) / 8 * 8;  // only B's begin anywhere
  if (turn % 4 == 1) problem.ldb = row_b + 1;
  if (turn % 5 == 0) problem.ldc = size.n + turn % 3;
  if (turn % 7 == 0) problem.beta = 0.5;
  if (turn % 11 == 0) problem.alpha = 2;
  problem = checked(problem).value();
  const KernelTraits traits = traits_of(problem);
  if (traits.align_a == 16 && traits.align_b == 16) return std::nullopt;
  return problem;
}

inline std::vector<std::pair<Problem, Config>> ragged_products() {
  const std::vector<std::string> configs = {
      "block_m=16,block_n=16,block_k=64,stages=1,warps_m=1,warps_n=1,warps_k=1,split_k=1",
      "block_m=32,block_n=32,block_k=64,stages=2,warps_m=2,warps_n=2,warps_k=1,split_k=2",
      "block_m=32,block_n=64,block_k=64,stages=3,warps_m=1,warps_n=1,warps_k=4,split_k=4",
      "block_m=64,block_n=128,block_k=128,stages=1,warps_m=1,warps_n=2,warps_k=2,split_k=8",
      "block_m=128,block_n=64,block_k=64,stages=2,warps_m=2,warps_n=1,warps_k=2,split_k=1",
      "block_m=48,block_n=48,block_k=192,stages=1,warps_m=1,warps_n=2,warps_k=2,split_k=1",
      "block_m=48,block_n=48,block_k=128,stages=1,warps_m=3,warps_n=3,warps_k=1,split_k=1",
      "block_m=16,block_n=8,block_k=64,stages=2,warps_m=1,warps_n=1,warps_k=2,split_k=1,boxes=1",
      "block_m=64,block_n=64,block_k=64,stages=3,warps_m=2,warps_n=1,warps_k=2,split_k=1,boxes=1",
      "block_m=32,block_n=64,block_k=192,stages=1,warps_m=1,warps_n=2,warps_k=1,split_k=2,boxes=1"};
  std::vector<std::pair<Problem, Config>> all;
  int turn = 0;
  for (const std::string& text : configs) {
    const Config config = parse_config("mma_bulk:" + text, *find_family("gemm")).value();
    for (const RaggedSize& size : kRaggedSizes) {  // rows no longer than block_k come as runs
      for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32}) {
        if (const auto problem = ragged_product(size, dtype, Layout::tn, ++turn)) {
          all.emplace_back(*problem, config);
        }
      }
    }
  }
  return all;
}

// The same for kernels that pack operands: wgmma_pack alone, in clusters that share loads, and with
// parts of k; and wgmma_fp32.
inline std::vector<std::pair<Problem, Config>> packed_products() {
  const std::vector<std::string> configs = {
      "block_m=64,block_n=64,consumers=1,pingpong=0,cluster_m=1,cluster_n=1,split_k=1",
      "block_m=64,block_n=48,consumers=2,pingpong=1,cluster_m=1,cluster_n=2,split_k=1",
      "block_m=128,block_n=72,consumers=2,pingpong=0,cluster_m=2,cluster_n=1,split_k=1",
      "block_m=64,block_n=64,consumers=1,pingpong=0,cluster_m=1,cluster_n=1,split_k=2",
      "block_m=64,block_n=64,consumers=1,pingpong=0,cluster_m=1,cluster_n=2,split_k=2"};
  std::vector<std::pair<Problem, Config>> all;
  int turn = 0;
  for (const std::string& text : configs) {
    const Config config =
        parse_config("wgmma_pack:block_k=64,stages=3," + text, *find_family("gemm")).value();
    for (const RaggedSize& size : kRaggedSizes) {
      for (const DType dtype : {DType::bf16, DType::fp16, DType::tf32}) {
        ++turn;
        const Layout layout = dtype == DType::tf32 ? Layout::tn : kAllLayouts[turn % 4];
        if (const auto problem = ragged_product(size, dtype, layout, turn)) {
          all.emplace_back(*problem, config);
        }
      }
    }
  }
  for (const char* text : {"wgmma_fp32:block_m=64,block_n=64,chains=1,cutters=3",
                           "wgmma_fp32:block_m=128,block_n=64,chains=2,cutters=7"}) {
    const Config config =
        parse_config(std::string(text) + ",block_k=32,stages=3,cut_stages=3", *find_family("gemm"))
            .value();
    for (const RaggedSize& size : kRaggedSizes) {
      ++turn;
      if (size.k < config.kernel->least_k({})) continue;
      if (const auto problem = ragged_product(size, DType::fp32, kAllLayouts[turn % 4], turn)) {
        all.emplace_back(*problem, config);
      }
    }
  }
  return all;
}

}  // namespace autotune::test

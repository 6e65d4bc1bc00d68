// Kernels with one step left out or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/problem.h"
#include "test/emulated/emulate.h"

namespace autotune::test {

struct Broken {
  std::string what;
  std::string config;
  DType dtype;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  int max_sms;
  Replaced replaced;
  std::string finding;  // part of what must be said
  Layout layout = Layout::tn;
  std::string family = "gemm";
  Activation activation = Activation::gelu_tanh;
};

// What fills wgmma's ring, waits for it and multiplies.
std::vector<Broken> broken_rings();
// How wgmma's sums meet and leave.
std::vector<Broken> broken_stores();
std::vector<Broken> broken_mma_bulk();
std::vector<Broken> broken_others();

// Configs of wgmma, or the beginnings and ends of some.
inline const std::string kOne =
    "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,pingpong=0,raster=0,swizzle=1,";
inline const std::string kTwo =
    "wgmma:block_m=128,block_n=64,block_k=32,stages=3,consumers=2,pingpong=0,raster=0,swizzle=1,";
inline const std::string kAlone = "cluster_m=1,cluster_n=1,split_k=1";
inline const std::string kPair = "cluster_m=1,cluster_n=2,split_k=1";

}  // namespace autotune::test

// Every way for warps and blocks to work together, one small launch each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autotune/types.h"

namespace autotune::test {

// A product in layout tn.
struct SmallLaunch {
  DType dtype;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::string config;
  int max_sms = 0;                // fewer than there are tiles: blocks take several
  bool stalls_racecheck = false;  // did not end under it, but everywhere else
};

inline const std::vector<SmallLaunch>& small_launches() {
  using enum DType;
  static const std::string one = "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,";
  static const std::string two = "wgmma:block_m=128,block_n=64,block_k=32,stages=3,consumers=2,";
  static const std::string whole = "pingpong=0,cluster_m=1,cluster_n=1,split_k=1";
  static const std::string order = ",raster=0,swizzle=1";
  static const std::vector<SmallLaunch> all = {
      {tf32, 100, 68, 160, one + whole + order},
      {tf32, 200, 68, 160,
       "wgmma:block_m=64,block_n=64,block_k=32,stages=14,consumers=1," + whole + order, 1},
      {tf32, 300, 68, 160, two + whole + order, 1},
      {tf32, 300, 68, 160,
       "wgmma:block_m=128,block_n=128,block_k=32,stages=7,consumers=2," + whole + order, 1},
      {tf32, 300, 36, 160,  // C in one store of each warp
       "wgmma:block_m=128,block_n=32,block_k=32,stages=11,consumers=2," + whole + order, 1},
      {tf32, 300, 60, 160,  // C by half rows of 64 bytes, since whole ones leave no room
       "wgmma:block_m=128,block_n=56,block_k=32,stages=9,consumers=2," + whole + order, 1},
      {tf32, 100, 136, 160,  // four chunks of C to a row
       "wgmma:block_m=64,block_n=128,block_k=32,stages=3,consumers=1," + whole + order, 1},
      {tf32, 600, 36, 160,
       "wgmma:block_m=192,block_n=32,block_k=32,stages=8,consumers=3," + whole + order, 1},
      {tf32, 300, 68, 160,
       "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=2,pingpong=1,cluster_m=1,"
       "cluster_n=1,split_k=1" +
           order,
       1},
      {tf32, 600, 68, 32,  // tiles of one k tile
       "wgmma:block_m=64,block_n=64,block_k=32,stages=3,consumers=2,pingpong=1,cluster_m=1,"
       "cluster_n=1,split_k=1" +
           order,
       1},
      {tf32, 300, 136, 160, two + "pingpong=0,cluster_m=2,cluster_n=1,split_k=1" + order, 2},
      {tf32, 200, 200, 160, one + "pingpong=0,cluster_m=1,cluster_n=2,split_k=1" + order, 2},
      {tf32, 300, 136, 164, one + "pingpong=0,cluster_m=4,cluster_n=1,split_k=1" + order, 4},
      {bf16, 200, 600, 328,
       "wgmma:block_m=64,block_n=72,block_k=64,stages=4,consumers=1,pingpong=0,cluster_m=2,"
       "cluster_n=4,split_k=1" +
           order,
       8},
      {tf32, 100, 68, 320, one + "pingpong=0,cluster_m=1,cluster_n=1,split_k=4" + order},
      {tf32, 200, 136, 320, two + "pingpong=0,cluster_m=1,cluster_n=2,split_k=3" + order},
      {tf32, 100, 200, 160, one + whole + ",stagger=1" + order, 2},
      {tf32, 200, 168, 320,
       "wgmma:block_m=64,block_n=80,block_k=32,stages=12,consumers=1,pingpong=0,cluster_m=1,"
       "cluster_n=1,split_k=2" +
           order,
       2, true},
      {tf32, 100, 200, 320, one + "pingpong=0,cluster_m=1,cluster_n=1,split_k=2,stagger=2" + order,
       0, true},
      {bf16, 20, 200, 200,
       "wgmma_swap:block_m=64,block_n=16,block_k=64,stages=3,consumers=1," + whole + order},
      {bf16, 20, 200, 320,
       "wgmma_swap:block_m=64,block_n=32,block_k=64,stages=3,consumers=1,pingpong=0,cluster_m=1,"
       "cluster_n=1,split_k=2" +
           order,
       0, true},
      {bf16, 100, 69, 131,
       "wgmma_pack:block_m=64,block_n=64,block_k=64,stages=3,consumers=1," + whole + order},
      {bf16, 200, 75, 332,  // blocks that take several tiles
       "wgmma_pack:block_m=64,block_n=32,block_k=64,stages=3,consumers=2,pingpong=1,cluster_m=2,"
       "cluster_n=1,split_k=1" +
           order,
       2},
      {tf32, 100, 69, 161,
       "wgmma_pack:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,pingpong=0,cluster_m=1,"
       "cluster_n=1,split_k=2" +
           order,
       0, true},  // presumed, as wgmma in two parts does not: racecheck has not been tried
      {tf32, 100, 68, 162,
       "wgmma_pack:block_m=64,block_n=64,block_k=32,stages=3,consumers=1,pingpong=0,cluster_m=1,"
       "cluster_n=2,split_k=2" +
           order},
      {fp32, 100, 68, 160,
       "wgmma_fp32:block_m=64,block_n=64,block_k=32,stages=3,cut_stages=3,chains=1,cutters=3" +
           order},
      {tf32, 100, 68, 160,
       "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=1" + order},
      {tf32, 100, 69, 161,
       "mma:block_m=64,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=3" + order},
      {tf32, 100, 69, 161,
       "mma_bulk:block_m=32,block_n=32,block_k=32,stages=2,warps_m=2,warps_n=1,warps_k=2,split_k="
       "1" +
           order,
       5},
      {bf16, 100, 68, 332,
       "mma_bulk:block_m=32,block_n=32,block_k=64,stages=2,warps_m=1,warps_n=2,warps_k=2,split_k="
       "4" +
           order,
       12},
      {bf16, 100, 69, 59,
       "mma_bulk:block_m=32,block_n=32,block_k=64,stages=1,warps_m=1,warps_n=2,warps_k=2,split_k="
       "1" +
           order,
       5},
      {bf16, 100, 69, 321,
       "mma_bulk:block_m=32,block_n=32,block_k=64,stages=2,warps_m=1,warps_n=2,warps_k=2,split_k="
       "1,boxes=1" +
           order,
       5},
      {fp32, 100, 68, 160,
       "mma:block_m=32,block_n=32,block_k=32,stages=3,warps_m=2,warps_n=2,split_k=1" + order},
      {fp32, 100, 68, 160,
       "simt:block_m=64,block_n=64,block_k=16,stages=3,thread_m=4,thread_n=4,min_blocks=1" + order},
      {tf32, 7, 68, 320,
       "gemv:block_m=8,block_n=16,block_k=64,stages=2,warps_n=1,warps_k=4,min_blocks=1" + order},
      {bf16, 40, 36, 200,  // rows in three tiles
       "gemv:block_m=16,block_n=16,block_k=128,stages=1,warps_n=1,warps_k=4,min_blocks=1" + order,
       4},
      {bf16, 3, 35, 1100,
       "gemv:block_m=4,block_n=2,block_k=512,stages=2,warps_n=1,warps_k=2,lanes_k=32,min_blocks=1" +
           order},
      {bf16, 2, 35, 1401,  // rows on 2 bytes: chunks in eight places, a rest that lanes share
       "gemv:block_m=2,block_n=2,block_k=512,stages=1,warps_n=1,warps_k=2,lanes_k=32,min_blocks=1" +
           order},
  };
  return all;
}

}  // namespace autotune::test

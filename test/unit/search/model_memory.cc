// The performance model's ways to memory: what the SMs of a GPC and pairs of blocks ask the L2 for,
// and what DRAM takes for short pieces of rows.
#include <string>

#include "predictions.h"

namespace autotune::search {
namespace {

constexpr std::string_view kH100 = "nvidia-h100-80gb-hbm3";
constexpr std::string_view kH200 = "nvidia-h200";

}  // namespace

TEST_CASE(
    "tiles beside each other that share operands are predicted to be faster, where GPCs are "
    "known") {
  DeviceSpec device = device_named(kH100);
  REQUIRE(device.gpc_sms == 16);
  // Measured there: 14.2, 14.6, 15.8 and 21.9 us for rows of tiles 8, 4, 2 and 1 high.
  const Problem problem = gemm(512, 2560, 2560);
  const auto predicted_in = [&](const std::string& order) {
    return predicted_us(config_of("wgmma:block_m=64,block_n=160,block_k=64,stages=8,consumers=1,"
                                  "pingpong=0,cluster_m=1,cluster_n=1,split_k=1,stagger=0," +
                                  order),
                        problem, device);
  };
  const double eight = predicted_in("raster=0,swizzle=2");
  const double two = predicted_in("raster=1,swizzle=2");
  const double one = predicted_in("raster=0,swizzle=16");
  CHECK(eight < two);
  CHECK(1.05 * eight < one);
  CHECK(two < one);
  device.gpc_sms = 0;
  CHECK(predicted_in("raster=0,swizzle=2") == predicted_in("raster=0,swizzle=16"));
}

TEST_CASE("weights that several GPCs ask for come late where DRAM is the limit") {
  DeviceSpec device = device_named(kH200);
  struct Case {
    Problem problem;
    const char* tile;
    const char* good;  // the order that a search found
    const char* bad;
    double good_us;  // measured on an H200, 0: not there
    double bad_us;
  };
  // Of the first two it is only known that neighbours share weights in the good order and not in
  // the bad one (kernels/gemm/NOTES.md, What a GPC's SMs share).
  const Case cases[] = {
      {gemm(128, 14336, 4096),
       "wgmma:block_m=64,block_n=224,block_k=64,stages=5,consumers=1,split_k=1",
       "raster=0,swizzle=1", "raster=1,swizzle=1", 34.3, 48.5},
      {gemm(512, 4096, 14336),
       "wgmma:block_m=64,block_n=256,block_k=64,stages=4,consumers=1,split_k=1",
       "raster=0,swizzle=1", "raster=1,swizzle=1", 78, 124},
      {gemm(144, 12288, 4096),
       "wgmma_swap:block_m=192,block_n=72,block_k=128,stages=3,consumers=1,split_k=1",
       "raster=1,swizzle=4", "raster=0,swizzle=1", 0, 42.1},
      {gemm(192, 4096, 11008),
       "wgmma_swap:block_m=128,block_n=96,block_k=64,stages=7,consumers=1,split_k=2",
       "raster=1,swizzle=2", "raster=0,swizzle=1", 30.6, 41.0},
      {gemm(160, 4096, 4096),
       "wgmma_swap:block_m=64,block_n=80,block_k=128,stages=6,consumers=1,split_k=1",
       "raster=0,swizzle=2", "raster=0,swizzle=1", 14.6, 19.3}};
  for (const Case& each : cases) {
    const auto us_in = [&](const std::string& order) {
      return predicted_us(config_of(std::string(each.tile) +
                                    ",pingpong=0,cluster_m=1,cluster_n=1,stagger=0," + order),
                          each.problem, device);
    };
    INFO(describe(each.problem) << ": " << us_in(each.good) << " and " << us_in(each.bad));
    device.gpc_sms = 16;
    if (each.good_us > 0) CHECK(us_in(each.good) == Approx(each.good_us).epsilon(0.2));
    CHECK(us_in(each.bad) == Approx(each.bad_us).epsilon(0.2));
    CHECK(us_in(each.good) < 0.95 * us_in(each.bad));
    device.gpc_sms = 0;
    CHECK(us_in(each.good) > 0.95 * us_in(each.bad));
  }
}

TEST_CASE("few clusters go round the GPCs, single blocks fill some of them") {
  const DeviceSpec device = device_named(kH200);
  const auto way_us = [&](const char* cluster) {
    return term_us("alone: a GPC's way to L2",
                   config_of(std::string("wgmma_swap:block_m=64,block_n=16,block_k=128,stages=7,"
                                         "consumers=1,pingpong=0,cluster_n=1,split_k=1,stagger=0,"
                                         "raster=0,swizzle=1,cluster_m=") +
                             cluster),
                   gemm(16, 4104, 4104), device);
  };
  CHECK(way_us("4") == Approx(12.0 / 16 * way_us("1")).epsilon(0.02));  // 17 of them
}

TEST_CASE("behind the first wave, neighbours that share less of their tiles lose more") {
  DeviceSpec device = device_named(kH100);
  // 256 rows of A and 80 of B. Neighbours have the rows of A in common, or those of B; the 16
  // blocks of a GPC have 4 x 4 tiles either way.
  const std::string tile =
      "wgmma:block_m=256,block_n=80,block_k=64,stages=5,consumers=2,pingpong=1,cluster_m=1,"
      "cluster_n=1,split_k=1,stagger=0,swizzle=4,raster=";
  const Config share_a = config_of(tile + "0");
  const Config share_b = config_of(tile + "1");
  const Problem waves = gemm(5120, 10560, 2048);  // 20 of 132 tiles
  const std::string label = "alone: a pair's way to L2";
  CHECK(term_us(label, share_a, waves, device) ==
        Approx(term_us(label, share_b, waves, device) * (256 + 2 * 80) / (2 * 256 + 80)));

  const auto slowdown = [&](const Config& config, const Problem& problem) {
    device.model.pair_bytes_per_clock = 128;
    const double before = predicted_us(config, problem, device);
    device.model.pair_bytes_per_clock = 64;
    return predicted_us(config, problem, device) / before;
  };
  CHECK(slowdown(share_a, waves) > 1.02);
  CHECK(slowdown(share_b, waves) > slowdown(share_a, waves) + 0.05);
  const Problem one_wave = gemm(1024, 2640, 2048);  // 132 tiles
  CHECK(slowdown(share_b, one_wave) == 1);
  CHECK(term_us(label, share_b, one_wave, device) == 0);
}

TEST_CASE("a pair of blocks has a part of a larger cluster's loads") {
  const Problem problem = gemm(4096, 4096, 4096);
  const auto way_us = [&](const char* cluster) {
    const Config config = config_of(
        std::string("wgmma:block_m=128,block_n=128,block_k=64,stages=4,consumers=2,pingpong=0,"
                    "split_k=1,stagger=0,raster=0,swizzle=1,") +
        cluster);
    return term_us("alone: a pair's way to L2", config, problem, device_named(kH100));
  };
  // Tiles are square: a pair asks for three sides, half of a 2 x 2 for two. Fewer SMs are reached
  // by the latter, so they take a wave more.
  const double pair = way_us("cluster_m=2,cluster_n=1");
  CHECK(way_us("cluster_m=1,cluster_n=2") == Approx(pair));
  CHECK(way_us("cluster_m=2,cluster_n=2") < 0.8 * pair);
}

TEST_CASE("DRAM takes longer for operands that come in shorter pieces of rows") {
  DeviceSpec device = device_named(kH100);
  device.model.piece_bytes = 8;
  const auto dram_us = [&](Layout layout, int block_n, int block_k) {
    const Config config = config_of("mma:block_m=16,block_n=" + std::to_string(block_n) +
                                    ",block_k=" + std::to_string(block_k) +
                                    ",stages=4,warps_m=1,warps_n=2,split_k=1,raster=0,swizzle=1");
    return term_us("alone: DRAM", config, gemm(16, 16384, 8192, DType::bf16, layout), device);
  };
  // Of 64 bytes and of 256, but for A and C, which have 3 bytes in 1000.
  const double slower = (1 + 8.0 / 64) / (1 + 8.0 / 256);
  CHECK(dram_us(Layout::tn, 64, 32) / dram_us(Layout::tn, 64, 128) ==
        Approx(slower).epsilon(0.003));
  CHECK(dram_us(Layout::tn, 32, 32) == Approx(dram_us(Layout::tn, 64, 32)));
  // Along n, the tile's width counts.
  CHECK(dram_us(Layout::tt, 32, 32) / dram_us(Layout::tt, 128, 32) ==
        Approx(slower).epsilon(0.003));
  CHECK(dram_us(Layout::tt, 32, 32) == Approx(dram_us(Layout::tt, 32, 128)).epsilon(0.003));
}

}  // namespace autotune::search

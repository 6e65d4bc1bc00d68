// The performance model's time between k tiles, tiles and waves.
#include <string>

#include "predictions.h"

namespace autotune::search {
namespace {

constexpr std::string_view kH200 = "nvidia-h200";
constexpr std::string_view kH100 = "nvidia-h100-80gb-hbm3";

}  // namespace

TEST_CASE("each wave adds up its own parts of k") {
  const DeviceSpec device = device_named(kH200);
  const Config config =
      config_of("wgmma:block_m=128,block_n=128,block_k=64,stages=6,consumers=2,split_k=2");
  const auto sums_us = [&](std::int64_t m) {
    return term_us("split-k reduction", config, gemm(m, 1024, 8192), device);
  };
  const double one_wave = sums_us(1024);  // 64 pairs of 66
  CHECK(one_wave > 0);
  CHECK(sums_us(2048) == Approx(2 * one_wave));
}

TEST_CASE("a tile behind which the same warps have another costs more than a last one") {
  const DeviceSpec device = device_named(kH100);
  const auto epilogue_clocks = [&](std::int64_t m, const std::string& rest) {
    const Config config =
        config_of("wgmma:block_m=128,block_n=256,block_k=64,stages=3,consumers=2," + rest);
    return term_us("epilogue", config, gemm(m, 3072, 4096), device) * device.boost_mhz;
  };
  const double one = epilogue_clocks(1024, "pingpong=0");  // 96 tiles
  const double two = epilogue_clocks(2048, "pingpong=0");  // 192: two waves
  CHECK(one > 0);
  const double tile_bytes = 128 * 256 * 2;
  CHECK(two - 2 * one ==
        Approx(tile_bytes / device.model.between_tiles_bytes_per_clock).epsilon(1e-3));
  // In pingpong the other warps multiply meanwhile.
  CHECK(epilogue_clocks(2048, "pingpong=1") == Approx(epilogue_clocks(1024, "pingpong=1")));
}

TEST_CASE("gemv by FFMA waits for A at each step of a lane along k") {
  // Measured on an H100: 8.9 us in two warps, 6.7 in eight.
  const auto us = [](const std::string& warps) {
    const Config config =
        config_of("gemv:block_m=1,block_n=2,block_k=2048,stages=1,warps_n=1,lanes_k=32," + warps);
    return predicted_us(config, gemm(1, 768, 3072), device_named(kH100));
  };
  CHECK(us("warps_k=8,min_blocks=4") < us("warps_k=2,min_blocks=16"));
}

TEST_CASE("k tiles whose loads are all under way from the start wait in the fill alone") {
  const auto latency_us = [](const char* stages, std::int64_t k) {
    const Config config = config_of(
        std::string("wgmma:block_m=64,block_n=64,block_k=64,consumers=1,stages=") + stages);
    const Problem problem = gemm(512, 512, k);
    const DeviceSpec& device = device_named(kH100);
    DeviceSpec slow = device;
    slow.model.l2_latency_clocks += 1000;
    slow.model.dram_latency_clocks += 1000;
    return predicted_us(config, problem, slow) - predicted_us(config, problem, device);
  };
  const double fill = 2000 / device_named(kH100).boost_mhz;
  CHECK(latency_us("9", 512) == Approx(fill).epsilon(0.01));  // eight of eight
  CHECK(latency_us("5", 512) > 1.15 * fill);
  CHECK(latency_us("9", 2048) > 1.15 * fill);
}

TEST_CASE("the step between two k tiles costs half as much with tiles twice as deep") {
  const auto step_us = [](const std::string& depth) {
    const Config config = config_of("wgmma:block_m=128,block_n=64,consumers=1," + depth);
    const Problem problem = gemm(1024, 1024, 4096);
    DeviceSpec device = device_named(kH200);
    device.model.ahead_step_clocks = 10;
    const double before = predicted_us(config, problem, device);
    device.model.ahead_step_clocks = 60;
    return predicted_us(config, problem, device) - before;
  };
  const double shallow = step_us("block_k=64,stages=8");
  CHECK(shallow > 0);
  const double deep = step_us("block_k=128,stages=4");
  CHECK(deep > 0.4 * shallow);
  CHECK(deep < 0.6 * shallow);
}

TEST_CASE(
    "where stages fill behind a tile's stores only, each further tile waits for its first loads") {
  const DeviceSpec& device = device_named(kH200);
  const auto ring_of = [](int stages) {
    return config_of(
        "wgmma:block_m=64,block_n=64,block_k=128,consumers=1,pingpong=0,cluster_m=1,"
        "cluster_n=1,split_k=1,stagger=0,raster=0,swizzle=1,stages=" +
        std::to_string(stages));
  };
  // Of 132 SMs, each with one block that walks over its tiles.
  const Problem one_tile = gemm(512, 1024, 4096);
  const Problem two_tiles = gemm(1024, 1024, 4096);
  const Problem eight_tiles = gemm(2048, 2048, 4096);

  // Seven stages leave no room for stores of their own.
  CHECK_FALSE(ring_of(6).kernel->work(ring_of(6), two_tiles, device).stores_then_loads);
  const Config config = ring_of(7);
  const auto waited_us = [&](const Problem& problem) {
    Resources resources;
    REQUIRE_FALSE(check(config, problem, traits_of(problem), device, {}, &resources));
    Work work = config.kernel->work(config, problem, device);
    REQUIRE(work.stores_then_loads);
    const double behind = predict_us(work, problem, device, resources, 0);
    work.stores_then_loads = false;
    return behind - predict_us(work, problem, device, resources, 0);
  };
  CHECK(waited_us(one_tile) == 0);
  const double once = waited_us(two_tiles);
  const ModelCoefficients& model = device.model;
  CHECK(once > (model.l2_latency_clocks + model.dram_latency_clocks) / device.boost_mhz);
  CHECK(waited_us(eight_tiles) == Approx(7 * once));
}

}  // namespace autotune::search

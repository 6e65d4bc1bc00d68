// Made-up work on a GPU where nothing takes time but what a test gives a price, so that what the
// performance model should say can be counted by hand.
#pragma once

#include "real_plans.h"
#include "search/model.h"

namespace autotune::search {

inline constexpr int kSms = 132;
inline constexpr double kTiles = 10;  // of k

// An H200 on which nothing takes time, at 1000 clocks a microsecond.
inline DeviceSpec free_device() {
  DeviceSpec device = device_named("nvidia-h200");
  REQUIRE(device.sm_count == kSms);
  REQUIRE(device.limits.sub_partitions == 4);
  constexpr double kFree = 1e30;
  for (const Coefficient& each : model_coefficients()) {
    double& value = device.model.*each.member;
    if (each.name.ends_with("bytes_per_clock")) {
      value = kFree;
    } else if (each.name.ends_with("_share")) {
      value = 1;
    } else {
      value = 0;  // clocks, and bytes of a piece
    }
  }
  device.boost_mhz = 1000;
  device.launch_us = device.gpc_sms = device.measured_f16_bf16_tflops = 0;
  device.dram_gb_per_s = device.f16_bf16_tflops = device.tf32_tflops = device.fp32_tflops = kFree;
  return device;
}

struct Launch {
  Work work;
  Resources resources;
  Problem problem = test::gemm(4096, 4096, 4096);

  double us(const DeviceSpec& device, int max_sms = 0) const {
    return predict_us(work, problem, device, resources, max_sms);
  }
  double clocks(const DeviceSpec& device, int max_sms = 0) const {
    return 1000 * us(device, max_sms);
  }
};

// A block for each tile, `resident` of them on an SM at once.
inline Launch launch_of(std::int64_t tiles, int resident = 1) {
  Launch launch;
  Work& work = launch.work;
  work.tiles_m = tiles;
  work.tiles_n = 1;
  work.k_tiles = static_cast<std::int64_t>(kTiles);
  work.block_m = 128;
  work.block_n = work.block_k = 64;
  work.stages = 4;
  work.warps = 4;
  work.asynchronous = true;
  launch.resources.threads = 128;
  launch.resources.registers = launch.resources.register_demand = 64;
  launch.resources.smem_bytes = 200 * 1024 / resident;
  launch.resources.grid = tiles;
  return launch;
}

}  // namespace autotune::search

// What the performance model says of made-up work around its main loop: how launches and waves of
// blocks begin and end, and what adding up parts of k takes.
#include "made_up_work.h"

namespace autotune::search {
namespace {

Launch split_into(std::int64_t parts, bool in_a_cluster) {
  Launch launch = launch_of(1);
  launch.work.split_k = parts;
  launch.resources.grid = parts;
  if (in_a_cluster) {
    launch.work.cluster_k = parts;
    launch.resources.cluster = static_cast<int>(parts);
  }
  return launch;
}

}  // namespace

TEST_CASE("waves begin and end while others multiply, where more than one block is on an SM") {
  DeviceSpec device = free_device();
  device.model.prologue_clocks = 100;
  const auto begun = [&](int waves, int resident, bool asynchronous) {
    Launch launch = launch_of(waves * resident * kSms, resident);
    launch.work.asynchronous = asynchronous;
    return launch.clocks(device);
  };
  CHECK(begun(1, 1, false) == Approx(100));
  CHECK(begun(3, 1, false) == Approx(300));
  CHECK(begun(3, 2, false) == Approx(200));
  CHECK(begun(3, 1, true) == Approx(100));  // a warp of its own has loaded ahead

  device = free_device();
  device.model.epilogue_clocks = 100;
  const auto ended = [&](int waves, int resident, bool overlaps) {
    Launch launch = launch_of(waves * resident * kSms, resident);
    launch.work.epilogue_overlaps = overlaps;
    return launch.clocks(device);
  };
  CHECK(ended(1, 1, false) == Approx(100));
  CHECK(ended(3, 1, false) == Approx(300));
  CHECK(ended(3, 2, false) == Approx(200));
  CHECK(ended(3, 1, true) == Approx(100));
}

TEST_CASE("warps that store get the next tile's products going again, where they have another") {
  DeviceSpec device = free_device();
  device.model.between_tiles_bytes_per_clock = 1;
  const auto restarts = [&](std::int64_t grid, bool asynchronous) {
    Launch launch = launch_of(3 * kSms);
    launch.work.store_bytes_per_tile = 1000;
    launch.work.asynchronous = asynchronous;
    launch.resources.grid = grid;
    return launch.clocks(device) / 1000;
  };
  CHECK(restarts(kSms, true) == Approx(2));
  CHECK(restarts(kSms, false) == Approx(0).margin(1e-6));
  CHECK(restarts(3 * kSms, true) == Approx(0).margin(1e-6));
}

TEST_CASE("blocks that share loads start and end together, the parts of k do not") {
  DeviceSpec device = free_device();
  device.model.cluster_clocks = 100;
  Launch launch = launch_of(2);
  CHECK(launch.clocks(device) == Approx(0).margin(1e-6));
  launch.work.cluster_m = launch.resources.cluster = 2;
  CHECK(launch.clocks(device) == Approx(100));
  CHECK(split_into(2, true).clocks(device) == Approx(0).margin(1e-6));
}

TEST_CASE("of a cluster's parts of k each gathers its share of the tile from the others") {
  DeviceSpec device = free_device();
  device.model.cluster_bytes_per_clock = 1;
  const double tile = 128 * 64 * 4;
  CHECK(split_into(2, true).clocks(device) == Approx(tile / 2));
  CHECK(split_into(4, true).clocks(device) == Approx(tile / 4 * 3));
  Launch launch = split_into(2, true);
  launch.problem = test::gemm(17, 4096, 4096);  // of whose tile two steps of 16 rows are there
  CHECK(launch.clocks(device) == Approx(tile / 2 * 32 / 128));
  launch = split_into(2, true);
  launch.resources.smem_bytes /= 2;
  CHECK(launch.clocks(device, 1) == Approx(tile));  // both on one SM
}

TEST_CASE("in a workspace each part of k leaves its sum, and the last reads all of them") {
  DeviceSpec device = free_device();
  device.model.ahead_l2_bytes_per_clock = 1;
  const double tile = 128 * 64 * 4;
  Launch launch = split_into(4, false);
  CHECK(launch.clocks(device) == Approx((1 + 4) * tile));
  launch.resources.cooperative = true;  // or each a share
  CHECK(launch.clocks(device) == Approx((1 + 1) * tile));
}

TEST_CASE("each block that leaves a sum is counted by itself") {
  DeviceSpec device = free_device();
  device.model.workspace_sum_clocks = 100;
  CHECK(split_into(2, false).clocks(device) == Approx(100));
  Launch launch = split_into(2, false);
  launch.resources.smem_bytes /= 2;
  CHECK(launch.clocks(device, 1) == Approx(200));  // both on one SM
  launch = split_into(2, false);
  CHECK(launch.clocks(device, 1) == Approx(200));  // one after the other
}

TEST_CASE("who has a share of the sum stores that") {
  DeviceSpec device = free_device();
  device.model.store_bytes_per_clock = 1;
  const auto clocks = [&](Launch launch, bool cooperative) {
    launch.work.store_bytes_per_tile = 1000;
    launch.resources.cooperative = cooperative;
    return launch.clocks(device);
  };
  CHECK(clocks(launch_of(1), false) == Approx(1000));
  CHECK(clocks(split_into(4, false), false) == Approx(1000));
  CHECK(clocks(split_into(4, false), true) == Approx(250));
  CHECK(clocks(split_into(4, true), false) == Approx(250));
}

TEST_CASE("operands that are copied first are read and written, and all blocks meet behind that") {
  const auto packing = [](const DeviceSpec& device) {
    Launch launch = launch_of(1);
    const double without = launch.clocks(device);
    launch.work.packed_bytes = 1e6;
    return launch.clocks(device) - without;
  };
  DeviceSpec device = free_device();
  CHECK(packing(device) == Approx(0).margin(1e-6));
  device.dram_gb_per_s = 1e5;  // 100,000 bytes a clock
  CHECK(packing(device) == Approx(10));
  device = free_device();
  device.model.store_bytes_per_clock = 50;  // by each SM
  CHECK(packing(device) == Approx(1e6 / (kSms * 50)));
  device = free_device();
  device.model.workspace_sum_clocks = 100;
  CHECK(packing(device) == Approx(100));
  device = free_device();
  device.model.dram_latency_clocks = 100;
  CHECK(packing(device) == Approx(100));
}

TEST_CASE("an empty launch takes what was measured, else what the model says") {
  DeviceSpec device = free_device();
  device.model.launch_us = 3;
  CHECK(launch_of(1).us(device) == Approx(3));
  device.launch_us = 2;
  CHECK(launch_of(1).us(device) == Approx(2));
}

}  // namespace autotune::search

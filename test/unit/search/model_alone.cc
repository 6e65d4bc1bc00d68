// The performance model's main loop of made-up work, where one thing alone takes time.
#include <string>

#include "made_up_work.h"

namespace autotune::search {
namespace {

// Products alone take time: so many clocks for each k tile of a block.
DeviceSpec multiplying(Launch& launch, double clocks) {
  DeviceSpec device = free_device();
  device.f16_bf16_tflops = kSms;  // 1000 operations per clock of an SM
  launch.work.flops_per_k_tile = 1000 * clocks;
  return device;
}

}  // namespace

TEST_CASE("products take what the instruction, the power and the kernel's style allow") {
  DeviceSpec device = free_device();
  device.f16_bf16_tflops = 1000;
  device.tf32_tflops = 500;
  device.fp32_tflops = 60;
  device.model.ahead_tensor_share = 0.8;
  device.model.turns_tensor_share = 0.5;
  device.model.ffma_share = 0.9;
  Launch launch = launch_of(kSms);
  launch.work.flops_per_k_tile = 1e9;
  const auto tflops = [&] { return kSms * kTiles * 1e9 / launch.us(device) / 1e6; };
  CHECK(tflops() == Approx(800));
  launch.work.asynchronous = false;
  CHECK(tflops() == Approx(500));
  launch.work.unit_rate = 0.75;  // of the peak, by this instruction
  CHECK(tflops() == Approx(375));
  device.measured_f16_bf16_tflops = 400;  // with all the power that there is
  CHECK(tflops() == Approx(200));
  launch.work.unit_rate = 0.25;
  CHECK(tflops() == Approx(125));  // which does not need that
  launch.work.unit_rate = 1;
  launch.problem.dtype = DType::tf32;  // nobody measured it there
  CHECK(tflops() == Approx(250));
  launch.work.unit = Work::Unit::ffma;
  launch.work.unit_rate = 0.5;
  CHECK(tflops() == Approx(27));
}

TEST_CASE("FFMA waits for each instruction that reads shared memory or copies") {
  // Of the four instructions that an SM issues per clock, each reads 512 bytes or less.
  const DeviceSpec device = free_device();
  Launch launch = launch_of(kSms);
  launch.work.smem_bytes_per_k_tile = 100 * 4 * 512;
  launch.work.load_instructions_per_k_tile = 20;  // by each of four warps
  CHECK(launch.clocks(device) == Approx(0).margin(1e-6));
  launch.work.unit = Work::Unit::ffma;
  CHECK(launch.clocks(device) == Approx(kTiles * (100 + 20)));
}

TEST_CASE("what a thread cannot hold is written and read once per k tile, and products wait") {
  Launch launch = launch_of(kSms);
  DeviceSpec device = multiplying(launch, 5000);
  device.model.smem_bytes_per_clock = 64;
  CHECK(launch.clocks(device) == Approx(kTiles * 5000));
  launch.resources.register_demand += 10;
  const double bytes = 10 * 128 * (4 + 4);
  CHECK(launch.clocks(device) == Approx(kTiles * (5000 + bytes / 64)));
  // In shared memory too, where that alone is busy.
  launch.work.flops_per_k_tile = 0;
  launch.work.smem_bytes_per_k_tile = 5000 * 64;
  CHECK(launch.clocks(device) == Approx(kTiles * (5000 + bytes / 64)));
  launch.resources.role_registers = launch.resources.register_demand;  // moved to who needs them
  CHECK(launch.clocks(device) == Approx(kTiles * 5000));
}

TEST_CASE("a part of an SM multiplies nothing until a warp is there, of whatever block") {
  Launch launch = launch_of(kSms);
  const DeviceSpec device = multiplying(launch, 100);
  const double all_four = launch.clocks(device);
  launch.work.warps = 1;
  CHECK(launch.clocks(device) == Approx(4 * all_four));
  launch.work.warps = 2;
  CHECK(launch.clocks(device) == Approx(2 * all_four));
  Launch pairs = launch_of(2 * kSms, 2);
  pairs.work.flops_per_k_tile = launch.work.flops_per_k_tile;
  pairs.work.warps = 2;
  CHECK(pairs.clocks(device) == Approx(2 * all_four));
}

TEST_CASE("blocks that loop over tiles are as many on an SM as were launched") {
  Launch launch = launch_of(2 * kSms, 2);
  const DeviceSpec device = multiplying(launch, 100);
  launch.work.warps = 2;  // half an SM
  const double side_by_side = launch.clocks(device);
  launch.resources.grid = kSms;
  CHECK(launch.clocks(device) == Approx(2 * side_by_side));
}

TEST_CASE("a last wave takes as long as its fullest SM") {
  const auto clocks = [](std::int64_t tiles, int resident) {
    Launch launch = launch_of(tiles, resident);
    const DeviceSpec device = multiplying(launch, 100);
    return launch.clocks(device) / (kTiles * 100);
  };
  CHECK(clocks(kSms, 1) == Approx(1));
  CHECK(clocks(kSms + 1, 1) == Approx(2));
  CHECK(clocks(2 * kSms + 1, 2) == Approx(3));
  CHECK(clocks(3 * kSms + 1, 2) == Approx(4));
  CHECK(clocks(4 * kSms, 2) == Approx(4));
}

TEST_CASE("the parts of k that take longest have whole k tiles") {
  Launch launch = launch_of(1);
  const DeviceSpec device = multiplying(launch, 100);
  launch.work.split_k = launch.resources.grid = 3;
  CHECK(launch.clocks(device) == Approx(4 * 100));
}

TEST_CASE("an SM issues all warps' copies, and each warp waits between its own") {
  Launch launch = launch_of(kSms);
  launch.work.asynchronous = false;
  launch.work.load_instructions_per_k_tile = 5;
  DeviceSpec device = free_device();
  device.model.clocks_per_copy = 3;
  const double all_warps = 5 * 4 * 3;
  CHECK(launch.clocks(device) == Approx((3 + kTiles) * all_warps));  // three to fill four stages
  device.model.clocks_per_copy = 0;
  device.model.warp_clocks_per_copy = 30;
  CHECK(launch.clocks(device) == Approx(kTiles * 5 * 30));
  // Which another block's warps do not wait for.
  Launch pairs = launch_of(2 * kSms, 2);
  pairs.work.asynchronous = false;
  pairs.work.load_instructions_per_k_tile = 5;
  CHECK(pairs.clocks(device) == Approx(launch.clocks(device)));
}

TEST_CASE("k tiles behind those under way wait for the L2, as many at once as are under way") {
  Launch launch = launch_of(kSms);
  DeviceSpec device = free_device();
  device.model.l2_latency_clocks = 300;
  const double fill = 300;
  CHECK(launch.clocks(device) == Approx(fill + (kTiles - 3) * 300 / 3));
  launch.work.waits_per_k_tile = 2;  // and these whatever is under way
  CHECK(launch.clocks(device) == Approx(fill + (kTiles - 3) * 300 / 3 + kTiles * 2 * 300 / 3));
}

TEST_CASE("loads wait for DRAM as far as they come from there") {
  Launch launch = launch_of(kSms);
  launch.work.load_bytes_per_k_tile = 1000;
  const double loads = kSms * kTiles * 1000;
  DeviceSpec device = free_device();
  device.model.dram_latency_clocks = 300;
  const double fill = 300;
  const auto waits = [&](double bytes) {
    launch.work.a_bytes = bytes;
    return launch.clocks(device) - fill;
  };
  CHECK(waits(loads) == Approx((kTiles - 3) * 300 / 3));
  CHECK(waits(loads / 4) == Approx(waits(loads) / 4));
  CHECK(waits(2 * loads) == Approx(waits(loads)));
}

TEST_CASE("DRAM gives the share of its peak that the model says") {
  Launch launch = launch_of(1);
  launch.work.a_bytes = 1e9;
  DeviceSpec device = free_device();
  device.dram_gb_per_s = 4000;
  CHECK(launch.us(device) == Approx(250));
  device.model.dram_share = 0.5;
  CHECK(launch.us(device) == Approx(500));
}

TEST_CASE(
    "what is as busy as something else delays it, the less the further loads are ahead of it") {
  // How much longer products take where as many clocks go to something else.
  const auto delay = [](bool asynchronous, void (*add)(Launch&, DeviceSpec&)) {
    Launch launch = launch_of(kSms);
    launch.work.asynchronous = asynchronous;
    launch.work.stages = 11;  // all loads are under way from the start
    const auto main_loop_us = [&](const DeviceSpec& device) {
      CodeModel model(launch.work, launch.problem, device, launch.resources, 0);
      return model.terms({}).at(3).us;
    };
    DeviceSpec device = free_device();
    add(launch, device);
    REQUIRE(main_loop_us(device) == Approx(kTiles * 100 / 1000));
    device.f16_bf16_tflops = multiplying(launch, 100).f16_bf16_tflops;
    return main_loop_us(device) / (kTiles * 100 / 1000);
  };
  const auto smem = [](Launch& launch, DeviceSpec& device) {
    launch.work.smem_bytes_per_k_tile = 100;
    device.model.smem_bytes_per_clock = 1;
  };
  const auto latency = [](Launch& launch, DeviceSpec& device) {
    launch.work.waits_per_k_tile = 10;
    device.model.l2_latency_clocks = 100;  // ten k tiles share it
  };
  const auto dram = [](Launch& launch, DeviceSpec& device) {
    launch.work.a_bytes = kTiles * 100;
    device.dram_gb_per_s = 1;  // a byte a clock
  };
  const double ahead = delay(true, smem);
  CHECK(ahead > 1);
  CHECK(ahead < 1.1);
  CHECK(delay(false, smem) > 1.1);
  CHECK(delay(true, latency) > ahead);
  CHECK(delay(true, dram) > delay(true, latency));
  CHECK(delay(true, dram) < 1.5);
}

TEST_CASE("what alone takes time is the main loop, as the terms say") {
  // Two waves of two blocks on an SM, and one of one.
  Launch launch = launch_of(5 * kSms, 2);
  launch.work.asynchronous = false;
  launch.work.flops_per_k_tile = 1e6;
  launch.work.smem_bytes_per_k_tile = 2e5;
  launch.work.load_instructions_per_k_tile = 10;
  launch.work.load_bytes_per_k_tile = launch.work.a_bytes_per_k_tile = 1e4;
  launch.work.a_bytes = 1e8;
  struct Case {
    std::string label;
    void (*price)(DeviceSpec&);
  };
  const Case cases[] = {
      {"multiply", [](DeviceSpec& device) { device.f16_bf16_tflops = 500; }},
      {"shared memory", [](DeviceSpec& device) { device.model.smem_bytes_per_clock = 128; }},
      {"a GPC's way to L2",
       [](DeviceSpec& device) {
         device.gpc_sms = 16;
         device.model.gpc_bytes_per_clock = 600;
       }},
      {"a pair's way to L2", [](DeviceSpec& device) { device.model.pair_bytes_per_clock = 100; }},
      {"copy instructions", [](DeviceSpec& device) { device.model.clocks_per_copy = 4; }},
      {"a warp's copies", [](DeviceSpec& device) { device.model.warp_clocks_per_copy = 20; }},
      {"latency", [](DeviceSpec& device) { device.model.l2_latency_clocks = 300; }},
      {"between the L2's sides",
       [](DeviceSpec& device) {
         device.gpc_sms = 16;
         device.model.sides_bytes_per_clock = 1300;
       }},
      {"DRAM", [](DeviceSpec& device) { device.dram_gb_per_s = 4000; }},
  };
  for (const Case& each : cases) {
    INFO(each.label);
    DeviceSpec device = free_device();
    each.price(device);
    CodeModel model(launch.work, launch.problem, device, launch.resources, 0);
    double main_loop = 0;
    for (const TimeTerm& term : model.terms({})) {
      if (term.label == "main loop") main_loop = term.us;
      if (term.label == "alone: " + each.label) {
        CHECK(term.us > 0);
        CHECK(term.us == Approx(main_loop));
      } else if (term.label.starts_with("alone: ")) {
        CHECK(term.us == Approx(0).margin(1e-6));
      }
    }
    CHECK(main_loop > 0);
  }
}

}  // namespace autotune::search

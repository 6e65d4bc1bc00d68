#include "kernels/device_spec.h"

#include "test/support/catch.h"

namespace autotune {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

DeviceSpec datasheet_gpu() {
  DeviceSpec device;
  device.name = "NVIDIA H200";
  device.limits.cc = 90;
  device.limits.smem_optin_per_block = 232448;
  device.sm_count = 132;
  device.dram_bytes = 150110011392;
  device.dram_gb_per_s = 4000;
  device.f16_bf16_tflops = 1000;
  device.tf32_tflops = 500;
  device.fp32_tflops = 60;
  return device;
}

DeviceSpec measured_gpu() {
  DeviceSpec device = datasheet_gpu();
  device.launch_us = 2;
  device.measured_f16_bf16_tflops = 800;
  device.cold_read_us = {{1, 4}, {10, 13}, {100, 33}};
  return device;
}

std::string fingerprint_with(std::int64_t dram_bytes) {
  DeviceSpec device = datasheet_gpu();
  device.dram_bytes = dram_bytes;
  return fingerprint(device);
}

TEST_CASE("slugs are lower case with single dashes") {
  CHECK(slug_of("NVIDIA H200") == "nvidia-h200");
  CHECK(slug_of("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3");
  CHECK(slug_of("  Orin (nvgpu) ") == "orin-nvgpu");
  CHECK(slug_of("").empty());
}

TEST_CASE("the fingerprint tells apart what runs differently") {
  const DeviceSpec device = datasheet_gpu();
  const std::string own = fingerprint(device);
  CHECK(own == "NVIDIA H200 cc=90 sms=132 smem=232448 memory=160GiB");
  DeviceSpec other = device;
  other.sm_count = 66;
  CHECK(fingerprint(other) != own);
  other = device;
  other.name = "NVIDIA H100";
  CHECK(fingerprint(other) != own);
  other = device;
  other.limits.smem_optin_per_block = 101376;
  CHECK(fingerprint(other) != own);
  CHECK(fingerprint_with(80LL << 30) != own);
}

TEST_CASE("ECC and what a driver keeps for itself do not change the fingerprint") {
  const std::int64_t gib = GENERATE(4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192);
  CAPTURE(gib);
  const std::int64_t nominal = gib << 30;
  CHECK(fingerprint_with(nominal) == fingerprint_with(nominal - nominal / 16));
  CHECK(fingerprint_with(nominal) == fingerprint_with(nominal - (300LL << 20)));
  CHECK(fingerprint_with(nominal) != fingerprint_with(nominal * 2));
}

TEST_CASE("without measurements the floor is the datasheet's") {
  bool measured = true;
  const DeviceSpec device = datasheet_gpu();
  CHECK(floor_us(device, DType::bf16, 0, 4e9, &measured) == Approx(1000));
  CHECK_FALSE(measured);
  CHECK(floor_us(device, DType::bf16, 1e12, 0, &measured) == Approx(1000));
  CHECK(floor_us(device, DType::tf32, 1e12, 0, nullptr) == Approx(2000));
  CHECK(floor_us(device, DType::fp32, 6e10, 0, nullptr, true) == Approx(1000));
  // Six products of bf16 for one of fp32, where that is the faster way.
  CHECK(floor_us(device, DType::fp32, 6e12, 0, nullptr) == Approx(36000));
  DeviceSpec fast_ffma = device;
  fast_ffma.fp32_tflops = 600;
  CHECK(floor_us(fast_ffma, DType::fp32, 6e11, 0, nullptr) == Approx(1000));
}

TEST_CASE("the floor of a memory-bound problem follows the measured curve") {
  const DeviceSpec device = measured_gpu();
  bool measured = false;
  const auto read_us = [&](double mib) {
    return floor_us(device, DType::bf16, 0, mib * kMiB, &measured);
  };
  CHECK(read_us(1) == Approx(4));
  CHECK(measured);
  CHECK(read_us(5.5) == Approx(8.5));
  CHECK(read_us(10) == Approx(13));
  CHECK(read_us(55) == Approx(23));
  CHECK(read_us(190) == Approx(53));
  CHECK(read_us(0.5) == Approx(3.5));
  CHECK(read_us(0) == Approx(3));
}

TEST_CASE("a curve never goes below a launch") {
  DeviceSpec device = measured_gpu();
  device.cold_read_us = {{1, 2.5}, {2, 10}};
  CHECK(floor_us(device, DType::bf16, 0, 0, nullptr) == Approx(2));
}

TEST_CASE("a single measured point is joined to the launch time") {
  DeviceSpec device = measured_gpu();
  device.cold_read_us = {{10, 12}};
  CHECK(floor_us(device, DType::bf16, 0, 5 * kMiB, nullptr) == Approx(7));
  CHECK(floor_us(device, DType::bf16, 0, 20 * kMiB, nullptr) == Approx(22));
}

TEST_CASE("the floor of a compute-bound problem uses the measured rate where known") {
  const DeviceSpec device = measured_gpu();
  bool measured = false;
  CHECK(floor_us(device, DType::fp16, 8e11, 0, &measured) == Approx(1000));
  CHECK(measured);
  CHECK(floor_us(device, DType::tf32, 4e11, 0, &measured) == Approx(1000));
  CHECK(measured);
  CHECK(floor_us(device, DType::fp32, 8e11, 0, &measured) == Approx(6000));
  CHECK(measured);
  CHECK(floor_us(device, DType::fp32, 6e10, 0, &measured, true) == Approx(1000));
  CHECK_FALSE(measured);
}

TEST_CASE("clusters of one GPC have places one behind the other, where somebody knows their GPCs") {
  DeviceSpec device;
  device.cluster_gpcs = {{2, {5, 1, 5, 1, 0}}, {4, {1, 0}}};
  using Places = std::vector<unsigned char>;
  const auto places = [](const DeviceSpec& gpu, int cluster, std::size_t clusters) {
    Places list(clusters, 99);
    place_by_gpc(gpu, cluster, list);
    return list;
  };
  CHECK(places(device, 2, 5) == Places{3, 1, 4, 2, 0});
  CHECK(places(device, 2, 3) == Places{1, 0, 2});
  CHECK(places(device, 4, 2) == Places{1, 0});
  CHECK(places(device, 2, 7) == Places{3, 1, 4, 2, 0, 5, 6});  // more than run at once
  CHECK(places(device, 8, 2) == Places{0, 1});
  CHECK(places({}, 2, 2) == Places{0, 1});
}

TEST_CASE("a GPU of which nothing is known has a floor of a launch") {
  DeviceSpec device;
  device.launch_us = 3;
  CHECK(floor_us(device, DType::bf16, 1e12, 1e9, nullptr) == Approx(3));
}

TEST_CASE("clusters reach whole multiples of SMs, one cluster at least") {
  DeviceSpec device = datasheet_gpu();
  CHECK(reached_sms(device, 2, 0) == 132);
  CHECK_FALSE(reached_sms(device, 4, 0));
  CHECK(presumed_sms(device, 4, 0) == 132);
  device.clustered_sms = 122;
  CHECK(reached_sms(device, 4, 0) == 120);
  CHECK(reached_sms(device, 8, 0) == 120);
  CHECK(reached_sms(device, 8, 64) == 64);
  CHECK(reached_sms(device, 8, 63) == 56);
  CHECK(reached_sms(device, 2, 3) == 2);
  CHECK(reached_sms(device, 2, 1) == 1);
  device.clustered_sms = 6;
  CHECK(reached_sms(device, 8, 0) == 8);
}

}  // namespace
}  // namespace autotune

#include "autotune/gpu/detect.h"

#include "test/support/catch.h"

using namespace autotune;

namespace {

ArchLimits hopper() {
  ArchLimits limits;
  limits.cc = 90;
  limits.arch = "sm_90a";
  limits.smem_per_sm = 233472;
  limits.smem_optin_per_block = 232448;
  limits.cluster_portable = 8;
  limits.registers_per_block = 65536;
  return limits;
}

gpu::DriverAttributes attributes() {
  gpu::DriverAttributes a;
  a.name = "NVIDIA H200";
  a.cc = 90;
  a.sm_count = 132;
  a.clock_khz = 1'980'000;
  a.memory_clock_khz = 3'201'000;
  a.memory_bus_bits = 6144;
  a.l2_bytes = 62'914'560;
  a.dram_bytes = 150'000'000'000;
  a.smem_optin_per_block = 232448;
  a.threads_per_sm = 2048;
  return a;
}

DeviceSpec h200() {
  DeviceSpec spec;
  spec.name = "NVIDIA H200";
  spec.slug = "nvidia-h200";
  spec.limits = hopper();
  spec.sm_count = 132;
  spec.boost_mhz = 1980;
  spec.dram_gb_per_s = 4800;
  spec.f16_bf16_tflops = 990;
  spec.fp32_tflops = 67;
  return spec;
}

}  // namespace

TEST_CASE("a known GPU keeps its rates, and the driver's own limits win") {
  gpu::DriverAttributes told = attributes();
  told.sm_count = 114;
  told.smem_optin_per_block = 200'000;
  const DeviceSpec known = h200();
  const DeviceSpec spec = gpu::merge(told, &known, known.limits, &known);
  CHECK(spec.sm_count == 114);
  CHECK(spec.limits.smem_optin_per_block == 200'000);
  CHECK(spec.limits.arch == "sm_90a");
  CHECK(spec.limits.cluster_portable == 8);
  CHECK(spec.limits.warps_per_sm == 64);
  CHECK(spec.f16_bf16_tflops == 990);
  CHECK(spec.dram_gb_per_s == 4800);
  CHECK(spec.derived.empty());
}

TEST_CASE("an attribute that the driver does not know changes nothing") {
  gpu::DriverAttributes told = attributes();
  told.smem_optin_per_block = 0;
  told.registers_per_block = 0;
  const DeviceSpec known = h200();
  const DeviceSpec spec = gpu::merge(told, &known, known.limits, nullptr);
  CHECK(spec.limits.smem_optin_per_block == 232448);
  CHECK(spec.limits.registers_per_block == 65536);
}

TEST_CASE("an unknown GPU takes its capability's limits and scales a relative's rates") {
  gpu::DriverAttributes told = attributes();
  told.name = "NVIDIA H999 Super";
  told.sm_count = 66;
  const DeviceSpec relative = h200();
  const DeviceSpec spec = gpu::merge(told, nullptr, hopper(), &relative);
  CHECK(spec.name == "NVIDIA H999 Super");
  CHECK(spec.slug == "nvidia-h999-super");
  CHECK(spec.limits.arch == "sm_90a");
  CHECK(spec.f16_bf16_tflops == Approx(495));
  CHECK(spec.dram_gb_per_s == Approx(4917).margin(1));
  CHECK(std::find(spec.derived.begin(), spec.derived.end(), "f16_bf16_tflops") !=
        spec.derived.end());
}

TEST_CASE("detecting without a GPU is an error that says so") {
  const auto gpus = gpu::detect_gpus();
  if (gpus) {
    CHECK(!gpus->empty());
    return;
  }
  CHECK(gpus.error().code == ErrorCode::no_gpu);
  CHECK(!gpus.error().message.empty());
}

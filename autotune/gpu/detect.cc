#include "autotune/gpu/detect.h"

#include <fmt/core.h>

#include <array>

#include "autotune/gpu/driver.h"
#include "autotune/io/builtin.h"

namespace autotune::gpu {
namespace {

struct Wanted {
  CUdevice_attribute attribute;
  int DriverAttributes::*field;
};
constexpr std::array kWanted{
    Wanted{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &DriverAttributes::sm_count},
    Wanted{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &DriverAttributes::clock_khz},
    Wanted{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &DriverAttributes::memory_clock_khz},
    Wanted{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &DriverAttributes::memory_bus_bits},
    Wanted{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &DriverAttributes::l2_bytes},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
           &DriverAttributes::smem_per_sm},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
           &DriverAttributes::smem_optin_per_block},
    Wanted{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
           &DriverAttributes::smem_reserved_per_block},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
           &DriverAttributes::static_smem_per_block},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &DriverAttributes::threads_per_sm},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &DriverAttributes::threads_per_block},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &DriverAttributes::blocks_per_sm},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
           &DriverAttributes::registers_per_sm},
    Wanted{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &DriverAttributes::registers_per_block},
};

DriverAttributes read_attributes(const DriverApi& api, CUdevice device) {
  DriverAttributes out;
  std::array<char, 256> name{};
  api.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device);
  out.name = name.data();
  int major = 0;
  int minor = 0;
  api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  out.cc = major * 10 + minor;
  std::size_t bytes = 0;
  api.cuDeviceTotalMem(&bytes, device);
  out.dram_bytes = bytes;
  for (const Wanted& wanted : kWanted) {
    api.cuDeviceGetAttribute(&(out.*wanted.field), wanted.attribute, device);
  }
  return out;
}

std::string uuid_of(const DriverApi& api, CUdevice device) {
  CUuuid raw{};
  if (api.cuDeviceGetUuid(&raw, device) != CUDA_SUCCESS) return {};
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(raw.bytes[i]));
  }
  return text;
}

const DeviceSpec* relative_of(int cc) {
  for (const DeviceSpec& device : io::known_devices()) {
    if (device.limits.cc == cc) return &device;
  }
  return nullptr;
}

// Takes what the driver told; an attribute that it does not know stays 0 and changes nothing.
template <class To>
void take(To& to, std::int64_t told) {
  if (told > 0) to = static_cast<To>(told);
}

void take_limits(const DriverAttributes& attributes, ArchLimits& limits) {
  take(limits.smem_per_sm, attributes.smem_per_sm);
  take(limits.smem_optin_per_block, attributes.smem_optin_per_block);
  take(limits.smem_reserved_per_block, attributes.smem_reserved_per_block);
  take(limits.static_smem_per_block, attributes.static_smem_per_block);
  take(limits.threads_per_sm, attributes.threads_per_sm);
  take(limits.warps_per_sm, attributes.threads_per_sm / 32);
  take(limits.threads_per_block, attributes.threads_per_block);
  take(limits.blocks_per_sm, attributes.blocks_per_sm);
  take(limits.registers_per_sm, attributes.registers_per_sm);
  take(limits.registers_per_block, attributes.registers_per_block);
}

void scale_rates(const DeviceSpec& relative, DeviceSpec& spec) {
  const double there = relative.sm_count * relative.boost_mhz;
  if (there <= 0) return;
  const double ratio = spec.sm_count * spec.boost_mhz / there;
  spec.f16_bf16_tflops = relative.f16_bf16_tflops * ratio;
  spec.fp8_tflops = relative.fp8_tflops * ratio;
  spec.tf32_tflops = relative.tf32_tflops * ratio;
  spec.fp32_tflops = relative.fp32_tflops * ratio;
  spec.derived = {"f16_bf16_tflops", "fp8_tflops", "tf32_tflops", "fp32_tflops"};
  if (spec.dram_gb_per_s <= 0) {
    spec.dram_gb_per_s = relative.dram_gb_per_s;
    spec.unverified = {"dram_gb_per_s"};
  }
}

std::string version_text(const DriverApi& api) {
  int version = 0;
  api.cuDriverGetVersion(&version);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

DeviceSpec merge(const DriverAttributes& attributes, const DeviceSpec* known,
                 const ArchLimits& limits, const DeviceSpec* relative) {
  DeviceSpec spec;
  if (known != nullptr) {
    spec = *known;
  } else {
    spec.name = attributes.name;
    spec.slug = slug_of(attributes.name);
    spec.limits = limits;
  }
  take_limits(attributes, spec.limits);
  take(spec.sm_count, attributes.sm_count);
  take(spec.l2_bytes, attributes.l2_bytes);
  take(spec.dram_bytes, static_cast<std::int64_t>(attributes.dram_bytes));
  if (known != nullptr) return spec;
  spec.boost_mhz = attributes.clock_khz / 1000.0;
  // Two transfers per clock on every memory type that the driver reports so.
  spec.dram_gb_per_s = 2.0 * attributes.memory_clock_khz * (attributes.memory_bus_bits / 8.0) / 1e6;
  if (relative != nullptr) scale_rates(*relative, spec);
  return spec;
}

Expected<std::vector<DetectedGpu>> detect_gpus() {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  int count = 0;
  const CUresult result = (*api)->cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot count the GPUs");
  std::vector<DetectedGpu> gpus;
  std::string unknown;
  for (int index = 0; index < count; ++index) {
    CUdevice device = 0;
    if ((*api)->cuDeviceGet(&device, index) != CUDA_SUCCESS) continue;
    const DriverAttributes attributes = read_attributes(**api, device);
    const ArchLimits* limits = io::find_capability(attributes.cc);
    if (limits == nullptr) {
      unknown = fmt::format("{} has compute capability {}.{}, which this program does not know",
                            attributes.name, attributes.cc / 10, attributes.cc % 10);
      continue;
    }
    DetectedGpu gpu;
    gpu.index = index;
    gpu.spec =
        merge(attributes, io::find_device(attributes.name), *limits, relative_of(attributes.cc));
    gpu.uuid = uuid_of(**api, device);
    gpu.driver = version_text(**api);
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty()) {
    return fail(ErrorCode::no_gpu,
                unknown.empty() ? "the driver finds no GPU on this machine" : unknown);
  }
  return gpus;
}

Expected<DetectedGpu> detect_gpu(int index) {
  auto gpus = detect_gpus();
  if (!gpus) return tl::unexpected(gpus.error());
  for (DetectedGpu& gpu : *gpus) {
    if (gpu.index == index) return std::move(gpu);
  }
  std::string usable;
  for (const DetectedGpu& gpu : *gpus) {
    usable += fmt::format("{}{} ({})", usable.empty() ? "" : ", ", gpu.index, gpu.spec.name);
  }
  return fail(
      ErrorCode::no_gpu,
      fmt::format("there is no GPU {} here that this program knows; there is {}", index, usable));
}

}  // namespace autotune::gpu

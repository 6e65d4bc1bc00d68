#include "autotune/gpu/launch.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "autotune/gpu/gpcs.h"
#include "autotune/gpu/handles.h"
#include "autotune/io/builtin.h"
#include "search/occupancy.h"

namespace autotune::gpu {

struct LoadedKernel::Impl {
  const DriverApi* api;
  Module module;
  CUfunction function;
  CUdevice device;
  bool in_clusters;  // its code has the entry that tells where these run
};

namespace {

std::int64_t threads_of(const LaunchPlan& plan) {
  return std::int64_t{plan.block[0]} * plan.block[1] * plan.block[2];
}

std::int64_t cluster_of(const LaunchPlan& plan) {
  return std::int64_t{plan.cluster[0]} * plan.cluster[1] * plan.cluster[2];
}

using Attributes = std::array<CUlaunchAttribute, 3>;

// `attributes` must live as long as the result.
CUlaunchConfig configuration(const LaunchPlan& plan, CUstream stream, Attributes& attributes) {
  CUlaunchConfig config{};
  config.gridDimX = plan.grid[0];
  config.gridDimY = plan.grid[1];
  config.gridDimZ = plan.grid[2];
  config.blockDimX = plan.block[0];
  config.blockDimY = plan.block[1];
  config.blockDimZ = plan.block[2];
  config.sharedMemBytes = plan.smem_bytes;
  config.hStream = stream;
  config.attrs = attributes.data();
  if (cluster_of(plan) > 1) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = plan.cluster[0];
    attribute.value.clusterDim.y = plan.cluster[1];
    attribute.value.clusterDim.z = plan.cluster[2];
  }
  if (plan.follows) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
  if (plan.cooperative) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  return config;
}

CUtensorMapDataType map_type(DType element) {
  switch (element) {
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::tf32:
      return CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;  // fp32 in memory
    case DType::fp32:
      break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

CUtensorMapSwizzle map_swizzle(std::uint32_t bytes) {
  switch (bytes) {
    case 128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    case 64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case 32:
      return CU_TENSOR_MAP_SWIZZLE_32B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

CUresult encode(const DriverApi& api, const TensorMap& map, CUtensorMap& out) {
  const std::array<cuuint64_t, 2> extents{static_cast<cuuint64_t>(map.inner),
                                          static_cast<cuuint64_t>(map.outer)};
  const cuuint64_t pitch = static_cast<cuuint64_t>(map.pitch_bytes);
  const std::array<cuuint32_t, 2> box{map.box_inner, map.box_outer};
  const std::array<cuuint32_t, 2> every{1, 1};
  return api.cuTensorMapEncodeTiled(
      &out, map_type(map.element), 2, reinterpret_cast<void*>(map.address), extents.data(), &pitch,
      box.data(), every.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(map.swizzle_bytes),
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

// Tensor maps begin at multiples of 64 bytes in it, as the driver wants them in memory.
struct alignas(64) Parameter {
  decltype(LaunchPlan::params) bytes;

  void copy(const LaunchPlan& plan) {
    std::memcpy(bytes.data(), plan.params.data(), plan.params_size);
  }
  CUtensorMap* map(const LaunchPlan& plan, std::size_t i) {
    return reinterpret_cast<CUtensorMap*>(bytes.data() + plan.maps[i].offset);
  }
};

// The parameter with its tensor maps in place.
Expected<void> encode_maps(const DriverApi& api, const LaunchPlan& plan, Parameter& parameter) {
  for (std::size_t i = 0; i < plan.map_count; ++i) {
    const TensorMap& map = plan.maps[i];
    const CUresult result = encode(api, map, *parameter.map(plan, i));
    if (result != CUDA_SUCCESS) {
      return driver_failure(
          result, fmt::format("the driver refuses a tensor map of {} x {} elements, {} bytes from "
                              "row to row, in boxes of {} x {}",
                              map.outer, map.inner, map.pitch_bytes, map.box_outer, map.box_inner));
    }
  }
  return {};
}

Expected<void> start(const DriverApi& api, CUfunction function, const LaunchPlan& plan,
                     Parameter& parameter, void* stream) {
  Attributes attributes{};
  const CUlaunchConfig config = configuration(plan, static_cast<CUstream>(stream), attributes);
  std::array<void*, 1> arguments{parameter.bytes.data()};
  const CUresult result = api.cuLaunchKernelEx(&config, function, arguments.data(), nullptr);
  if (result != CUDA_SUCCESS) return driver_failure(result, "the launch was refused");
  return {};
}

// What remains when threads and shared memory fit and yet no block does.
Expected<std::optional<Verdict>> too_many_registers(const DriverApi& api, CUdevice device,
                                                    std::int64_t threads, int registers) {
  int major = 0;
  int minor = 0;
  api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  const ArchLimits* limits = io::find_capability(major * 10 + minor);
  if (limits == nullptr) {
    return fail(ErrorCode::failed,
                fmt::format("no block of {} threads with {} registers each fits on this GPU",
                            threads, registers));
  }
  return Verdict{Rule::registers,
                 search::registers_of_block(*limits, static_cast<int>(threads), registers),
                 limits->registers_per_block};
}

// Of a launch whose blocks wait for each other, `at_once` can run.
std::optional<Verdict> too_many_to_wait(const LaunchPlan& plan, std::int64_t at_once) {
  const std::int64_t blocks = std::int64_t{plan.grid[0]} * plan.grid[1] * plan.grid[2];
  if (!plan.cooperative || blocks <= at_once) return std::nullopt;
  return Verdict{Rule::co_residency, blocks, at_once};
}

}  // namespace

LoadedKernel::LoadedKernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoadedKernel::LoadedKernel(LoadedKernel&&) noexcept = default;
LoadedKernel& LoadedKernel::operator=(LoadedKernel&&) noexcept = default;
LoadedKernel::~LoadedKernel() = default;

Expected<LoadedKernel> LoadedKernel::load(std::string_view cubin, std::string_view entry) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUdevice device = 0;
  if ((*api)->cuCtxGetDevice(&device) != CUDA_SUCCESS) {
    return fail(ErrorCode::no_gpu,
                "no CUDA context is current on this thread; create one before loading a kernel");
  }
  auto module = load_module(cubin.data());
  if (!module) return tl::unexpected(module.error());
  auto function = function_of(*module, std::string(entry).c_str());
  if (!function) return tl::unexpected(function.error());
  // Told by the code: to ask the driver for an entry that is not there is an error to sanitizers.
  const bool in_clusters = cubin.find(kWhereEntry) != std::string_view::npos;
  return LoadedKernel(
      std::make_unique<Impl>(Impl{*api, std::move(*module), *function, device, in_clusters}));
}

Expected<std::optional<Verdict>> LoadedKernel::prepare(const LaunchPlan& plan) const {
  const DriverApi& api = *impl_->api;
  int most_threads = 0;
  int static_bytes = 0;
  int optin_bytes = 0;
  int registers = 0;
  auto ask = [&](CUfunction_attribute what, int& value) {
    return api.cuFuncGetAttribute(&value, what, impl_->function);
  };
  CUresult result = ask(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, most_threads);
  if (result == CUDA_SUCCESS) result = ask(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, static_bytes);
  if (result == CUDA_SUCCESS) result = ask(CU_FUNC_ATTRIBUTE_NUM_REGS, registers);
  if (result == CUDA_SUCCESS) {
    result = api.cuDeviceGetAttribute(
        &optin_bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, impl_->device);
  }
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot read a kernel's attributes");

  if (threads_of(plan) > most_threads) {
    return Verdict{Rule::threads, threads_of(plan), most_threads};
  }
  const std::int64_t shared_bytes = std::int64_t{plan.smem_bytes} + static_bytes;
  const Verdict too_much_memory{Rule::shared_memory, shared_bytes, optin_bytes};
  if (shared_bytes > optin_bytes) return too_much_memory;
  result = api.cuFuncSetAttribute(impl_->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(plan.smem_bytes));
  if (result == CUDA_ERROR_INVALID_VALUE) return too_much_memory;
  if (result != CUDA_SUCCESS)
    return driver_failure(result, "cannot raise a kernel's shared memory");

  if (cluster_of(plan) > 1) {
    Attributes attributes{};
    const CUlaunchConfig config = configuration(plan, nullptr, attributes);
    int clusters = 0;
    result = api.cuOccupancyMaxActiveClusters(&clusters, impl_->function, &config);
    if (result != CUDA_SUCCESS || clusters == 0) {
      return Verdict{Rule::cluster, cluster_of(plan), 0};
    }
    return too_many_to_wait(plan, clusters * cluster_of(plan));
  }
  int blocks = 0;
  result = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, impl_->function, static_cast<int>(threads_of(plan)), plan.smem_bytes);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot ask for a kernel's occupancy");
  if (blocks == 0) return too_many_registers(api, impl_->device, threads_of(plan), registers);
  int sms = 0;
  result = api.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, impl_->device);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot read a GPU's attributes");
  return too_many_to_wait(plan, std::int64_t{blocks} * sms);
}

DeviceSpec LoadedKernel::placed(DeviceSpec device) const {
  if (!impl_->in_clusters) return device;
  auto told = cluster_gpcs(impl_->module.get(), device);
  if (!told.empty()) device.cluster_gpcs = std::move(told);
  return device;
}

Expected<void> LoadedKernel::launch(const LaunchPlan& plan, void* stream) const {
  Parameter parameter;
  parameter.copy(plan);
  auto encoded = encode_maps(*impl_->api, plan, parameter);
  if (!encoded) return encoded;
  return start(*impl_->api, impl_->function, plan, parameter, stream);
}

Expected<ReadyLaunch> LoadedKernel::ready(const PlanFor& plan_for) const {
  // Of no memory, but such as the driver takes.
  constexpr std::uint64_t kAnywhere = std::uint64_t{1} << 32;
  const DevicePointers base{kAnywhere, kAnywhere, kAnywhere, kAnywhere, kAnywhere, kAnywhere};
  auto pointers = pointers_of(plan_for, base);
  if (!pointers) return fail(ErrorCode::failed, "more than addresses depends on the pointers");
  ReadyLaunch ready{plan_for(base), *std::move(pointers)};
  Parameter parameter;
  parameter.copy(ready.plan);
  auto encoded = encode_maps(*impl_->api, ready.plan, parameter);
  if (!encoded) return tl::unexpected(encoded.error());
  std::memcpy(ready.plan.params.data(), parameter.bytes.data(), ready.plan.params_size);
  return ready;
}

Expected<void> LoadedKernel::launch(const ReadyLaunch& ready, const DevicePointers& at,
                                    void* stream) const {
  Parameter parameter;
  parameter.copy(ready.plan);
  put_words(ready.pointers, at, parameter.bytes);
  for (const PlacedPointer& place : ready.pointers.maps) {
    const CUresult result = impl_->api->cuTensorMapReplaceAddress(
        parameter.map(ready.plan, place.at), reinterpret_cast<void*>(place.of(at)));
    if (result != CUDA_SUCCESS) return driver_failure(result, "the driver refuses an address");
  }
  return start(*impl_->api, impl_->function, ready.plan, parameter, stream);
}

}  // namespace autotune::gpu

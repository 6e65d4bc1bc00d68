#include "autotune/gpu/handles.h"

#include <fmt/core.h>

namespace autotune::gpu {

Expected<Context> Context::create(int device_index) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  const std::string what = fmt::format("cannot use GPU {}", device_index);
  Context context;
  CUresult result = (*api)->cuDeviceGet(&context.device_, device_index);
  CUcontext raw = nullptr;
  if (result == CUDA_SUCCESS) result = (*api)->cuDevicePrimaryCtxRetain(&raw, context.device_);
  if (result != CUDA_SUCCESS) return driver_failure(result, what);
  context.held_ = true;
  result = (*api)->cuCtxSetCurrent(raw);
  if (result != CUDA_SUCCESS) return driver_failure(result, what);
  return context;
}

Context::~Context() {
  if (!held_) return;
  if (auto api = driver()) (*api)->cuDevicePrimaryCtxRelease(device_);
}

Expected<Module> load_module(const void* image) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUmodule module = nullptr;
  const CUresult result = (*api)->cuModuleLoadData(&module, image);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot load a compiled kernel");
  return Module(module);
}

Expected<CUfunction> function_of(const Module& module, const char* name) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUfunction function = nullptr;
  const CUresult result = (*api)->cuModuleGetFunction(&function, module.get(), name);
  if (result != CUDA_SUCCESS) {
    return driver_failure(result, fmt::format("cannot find '{}' in a compiled kernel", name));
  }
  return function;
}

Expected<Stream> create_stream() {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUstream stream = nullptr;
  const CUresult result = (*api)->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot create a stream");
  return Stream(stream);
}

Expected<Event> create_event() {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUevent event = nullptr;
  const CUresult result = (*api)->cuEventCreate(&event, CU_EVENT_DEFAULT);
  if (result != CUDA_SUCCESS) return driver_failure(result, "cannot create an event");
  return Event(event);
}

}  // namespace autotune::gpu

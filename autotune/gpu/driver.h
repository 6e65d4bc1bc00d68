// The entry points of libcuda that this project uses, opened at run time. Only files of
// autotune/gpu/ include this header: it needs cuda.h.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune::gpu {

// cuda.h maps most names to versioned ones (cuMemAlloc to cuMemAlloc_v2); both the members below
// and the symbols looked up go through the same mapping.
#define AUTOTUNE_DRIVER_FUNCTIONS(X)             \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetUuid)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDeviceTotalMem)                            \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxSetCurrent)                             \
  X(cuCtxGetDevice)                              \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuLaunchKernelEx)                            \
  X(cuTensorMapEncodeTiled)                      \
  X(cuTensorMapReplaceAddress)                   \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuOccupancyMaxActiveClusters)                \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemHostAlloc)                              \
  X(cuMemFreeHost)                               \
  X(cuMemHostGetDevicePointer)                   \
  X(cuMemGetInfo)                                \
  X(cuMemcpyHtoD)                                \
  X(cuMemcpyDtoH)                                \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemsetD8Async)                             \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuThreadExchangeStreamCaptureMode)           \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuGraphInstantiate)                          \
  X(cuGraphLaunch)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventElapsedTime)

struct DriverApi {
#define AUTOTUNE_DECLARE(name) decltype(&::name) name = nullptr;
  AUTOTUNE_DRIVER_FUNCTIONS(AUTOTUNE_DECLARE)
#undef AUTOTUNE_DECLARE
};

// The opened and initialised driver, the same for the whole program. no_gpu where there is no
// driver, no device, or the driver is too old; the sentence says which.
Expected<const DriverApi*> driver();

// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string words(CUresult result);

// Codes after which this process can do nothing more on the GPU and must be replaced.
bool is_fatal(CUresult result);

// The error of a failed call: no_gpu for what the environment refuses (device busy, none there),
// else failed. `what` starts the sentence: "cannot create a context on GPU 0".
tl::unexpected<Error> driver_failure(CUresult result, std::string_view what);

}  // namespace autotune::gpu

// A driver with one NVIDIA H200 that can do nothing. FAKE_CUDA makes it refuse: "init=100" (the
// code that starting it gives), "context=46" (that making a context gives), "version=11000".
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int asked(const char* name, int usual) {
  const char* found = std::getenv("FAKE_CUDA");
  const std::size_t length = std::strlen(name);
  if (found == nullptr || std::strncmp(found, name, length) != 0 || found[length] != '=') {
    return usual;
  }
  return std::atoi(found + length + 1);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuInit(unsigned int) { return static_cast<CUresult>(asked("init", 0)); }

CUresult cuDriverGetVersion(int* version) {
  *version = asked("version", 13000);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "NVIDIA H200");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = nullptr;
  return static_cast<CUresult>(asked("context", 0));
}

}  // extern "C"
#pragma GCC visibility pop

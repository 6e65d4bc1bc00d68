#include "autotune/gpu/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "autotune/gpu/driver.h"

namespace autotune::gpu {

Expected<DeviceMemory> DeviceMemory::allocate(std::size_t bytes) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  CUdeviceptr pointer = 0;
  const CUresult result = (*api)->cuMemAlloc(&pointer, std::max<std::size_t>(bytes, 1));
  if (result != CUDA_SUCCESS) {
    return driver_failure(result, fmt::format("cannot allocate {} bytes on the GPU", bytes));
  }
  DeviceMemory memory;
  memory.address_ = pointer;
  memory.bytes_ = bytes;
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ == 0) return;
  if (auto api = driver()) (*api)->cuMemFree(address_);
}

}  // namespace autotune::gpu

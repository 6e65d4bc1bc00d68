// Device memory of the current context. No CUDA header: addresses are plain numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "autotune/types.h"

namespace autotune::gpu {

using DeviceAddress = std::uint64_t;

// Owner of one allocation, at least 256-byte aligned. Move-only; freed quietly with its owner,
// which must not outlive the context.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // failed with the driver's words and the size when it does not fit.
  static Expected<DeviceMemory> allocate(std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  DeviceAddress address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace autotune::gpu

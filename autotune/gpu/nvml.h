// The GPU's clock and whether it is throttled, from NVML where that is there. Reads only.
#pragma once

#include <memory>
#include <string>

namespace autotune::gpu {

struct ClockState {
  double sm_mhz = 0;  // 0: unknown
  // Heat, a power brake or another hardware slowdown. The power cap is not counted: it is the
  // normal state of a GPU that multiplies matrices.
  bool throttled = false;
};

// Move-only. Without NVML every answer is the default ClockState.
class Nvml {
 public:
  // `uuid` as NVML spells it: "GPU-0123abcd-...".
  explicit Nvml(const std::string& uuid);
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  ClockState read() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu

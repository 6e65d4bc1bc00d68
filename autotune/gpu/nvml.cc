#include "autotune/gpu/nvml.h"

#include <array>

#include "autotune/gpu/library.h"

namespace autotune::gpu {
namespace {

// nvml.h is not part of every toolkit installation; these few declarations are its stable ABI.
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;
// Hardware slowdown, software thermal, hardware thermal, power brake.
constexpr unsigned long long kThrottleReasons = 0x08 | 0x20 | 0x40 | 0x80;

}  // namespace

struct Nvml::Impl {
  Library library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlDevice device = nullptr;
  bool initialised = false;

  explicit Impl(Library opened) : library(std::move(opened)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (initialised) shutdown();
  }

  bool start(const std::string& uuid) {
    if (!resolve(library, "nvmlInit_v2", init) || !resolve(library, "nvmlShutdown", shutdown) ||
        !resolve(library, "nvmlDeviceGetHandleByUUID", by_uuid) ||
        !resolve(library, "nvmlDeviceGetClockInfo", clock) ||
        !resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons", reasons)) {
      return false;
    }
    initialised = init() == kNvmlSuccess;
    return initialised && by_uuid(uuid.c_str(), &device) == kNvmlSuccess;
  }
};

Nvml::Nvml(const std::string& uuid) {
  const std::array<std::string, 2> names{"libnvidia-ml.so.1", "libnvidia-ml.so"};
  auto library = Library::open(names, {}, ErrorCode::no_gpu);
  if (!library) return;
  auto impl = std::make_unique<Impl>(std::move(*library));
  if (impl->start(uuid)) impl_ = std::move(impl);
}

Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

ClockState Nvml::read() const {
  ClockState state;
  if (impl_ == nullptr) return state;
  unsigned mhz = 0;
  if (impl_->clock(impl_->device, kNvmlClockSm, &mhz) == kNvmlSuccess) state.sm_mhz = mhz;
  unsigned long long reasons = 0;
  if (impl_->reasons(impl_->device, &reasons) == kNvmlSuccess) {
    state.throttled = (reasons & kThrottleReasons) != 0;
  }
  return state;
}

}  // namespace autotune::gpu

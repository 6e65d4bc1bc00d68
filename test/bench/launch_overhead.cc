#include "test/bench/launch_overhead.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "test/bench/clock.h"

namespace bench {
namespace {

using namespace autotune;

// What the library's launch hands to the driver, to be launched again without the library.
struct Recorded {
  CUlaunchConfig config{};
  CUlaunchAttribute attribute{};
  CUfunction function = nullptr;
  alignas(64) std::array<std::byte, sizeof(LaunchPlan::params)> params{};
};
Recorded recorded;
decltype(gpu::DriverApi::cuLaunchKernelEx) real_launch = nullptr;

CUresult CUDAAPI record(const CUlaunchConfig* config, CUfunction function, void** params,
                        void** extra) {
  recorded.config = *config;
  if (config->numAttrs > 0) recorded.attribute = config->attrs[0];
  recorded.config.attrs = &recorded.attribute;
  recorded.function = function;
  std::memcpy(recorded.params.data(), params[0], recorded.params.size());
  return real_launch(config, function, params, extra);
}

Expected<void> record_launch(const std::function<Expected<void>()>& launch) {
  auto& api = const_cast<gpu::DriverApi&>(**gpu::driver());
  real_launch = std::exchange(api.cuLaunchKernelEx, record);
  const Expected<void> launched = launch();
  api.cuLaunchKernelEx = real_launch;
  return launched;
}

CUresult bare_launch() {
  void* params[] = {recorded.params.data()};
  return real_launch(&recorded.config, recorded.function, params, nullptr);
}

}  // namespace

Expected<double> launch_overhead_us(const gpu::DriverApi& api, CUstream stream,
                                    const std::function<Expected<void>()>& launch) {
  if (auto launched = record_launch(launch); !launched) return tl::unexpected(launched.error());
  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i < 2000; ++i) {
    const auto before = Clock::now();
    if (auto launched = launch(); !launched) return tl::unexpected(launched.error());
    ours.push_back(us_since(before));
    const auto between = Clock::now();
    if (bare_launch() != CUDA_SUCCESS) return fail(ErrorCode::failed, "a bare launch failed");
    bare.push_back(us_since(between));
    // Never so many that a launch waits for room in the queue.
    if (i % 50 == 0) api.cuStreamSynchronize(stream);
  }
  return median(ours) - median(bare);
}

}  // namespace bench

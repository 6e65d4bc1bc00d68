// A compiled kernel in the caller's current context, and its launch. No CUDA header: streams are
// void pointers (CUstream, cudaStream_t).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "autotune/types.h"
#include "kernels/kernel.h"
#include "kernels/plan_pointers.h"
#include "kernels/verdict.h"

namespace autotune::gpu {

// A launch with all in place but its pointers.
struct ReadyLaunch {
  LaunchPlan plan;  // its parameter has the tensor maps
  PlanPointers pointers;
};

// Move-only; unloaded with its owner, while the context lives.
class LoadedKernel {
 public:
  // `cubin` is a whole cubin for this context's GPU (see read_cubin). no_gpu without a driver or a
  // current context, failed with the driver's words.
  static Expected<LoadedKernel> load(std::string_view cubin, std::string_view entry);
  LoadedKernel(LoadedKernel&&) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) noexcept;
  ~LoadedKernel();

  // Asks the driver whether such a launch can run, before any: threads against what the function
  // was compiled for, shared memory against the opt-in limit, clusters, blocks per SM. Raises the
  // function's limit of dynamic shared memory as needed. Call once before launch().
  Expected<std::optional<Verdict>> prepare(const LaunchPlan& plan) const;

  // The device as plans of this kernel are to be made for: for one in clusters with where the GPU
  // runs them, which is asked of it (see gpcs.h). Else, and where it does not tell, as it is given.
  DeviceSpec placed(DeviceSpec device) const;

  // Asynchronous on `stream` (null: the default one). failed with the driver's words.
  Expected<void> launch(const LaunchPlan& plan, void* stream) const;

  // For many launches that differ in pointers alone: a plan takes longer to make, and its tensor
  // maps to encode, than to launch. failed with the driver's words.
  Expected<ReadyLaunch> ready(const PlanFor& plan_for) const;
  Expected<void> launch(const ReadyLaunch& ready, const DevicePointers& at, void* stream) const;

 private:
  struct Impl;
  explicit LoadedKernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu

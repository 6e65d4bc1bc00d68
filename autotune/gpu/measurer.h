// Answers the tuner's requests on one GPU: is this config right, and how fast is it.
#pragma once

#include <memory>

#include "autotune/gpu/detect.h"
#include "autotune/worker/messages.h"

namespace autotune::gpu {

// Keeps its context, inputs, reference and loaded kernels from request to request. Move-only, used
// from the thread that created it.
class Measurer {
 public:
  // no_gpu, no_compiler (its own device kernels are compiled here).
  static Expected<Measurer> create(int device_index);
  Measurer(Measurer&&) noexcept;
  Measurer& operator=(Measurer&&) noexcept;
  ~Measurer();

  const DetectedGpu& gpu() const;

  // launch_failed (with a verdict where the driver names a limit), faulted, wrong_result or ok.
  worker::MeasureReply measure(const worker::MeasureRequest& request);
  worker::CompareReply compare(const worker::CompareRequest& request);

  // For while no request is there: some milliseconds of launches that keep the GPU as warm as the
  // last request's long ones made it, so that the next one's times are of the same clocks. False
  // where there is nothing to keep, nobody has asked for a while, or a launch failed.
  bool keep_warm();

  // True after a fault that poisoned the context: the process must end and be replaced.
  bool lost() const;

 private:
  struct Impl;
  explicit Measurer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu

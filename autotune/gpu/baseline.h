// The best that cuBLASLt and cuBLAS have for a problem: what ours is compared with.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autotune/gpu/operands.h"
#include "autotune/gpu/timer.h"

namespace autotune::gpu {

// Move-only. Belongs to the operands, the workbench and the timer it was made with.
class Baseline {
 public:
  // As Timer::sample.
  using Sampler = std::function<Expected<std::vector<double>>(std::span<const Turn>)>;

  // Asks cuBLASLt for up to 64 heuristic results with a 64 MiB workspace, adds cublasGemmEx, times
  // them in `mode` by `sample` and keeps the fastest (fastest.h). A candidate that fails, writes
  // NaN, or is not exact where the problem is fp32 does not count. failed where none is left. Of a
  // gated family, a candidate is two products, or one of both matrices of weights where they lie
  // so, and an elementwise kernel of ours behind them, all of which is timed.
  static Expected<Baseline> choose(Workbench& bench, Timer& timer, const Sampler& sample,
                                   Operands& operands, TimingMode mode);
  Baseline(Baseline&&) noexcept;
  Baseline& operator=(Baseline&&) noexcept;
  ~Baseline();

  // Which of those that are level is the fastest depends on how hot the GPU is, so that whoever
  // compares times all of them: the fastest first.
  struct Way {
    std::string name;    // "cublasLt #3", "cublasGemmEx twice + elementwise kernel"
    Correctness result;  // against our reference, at the first place
    Launch launch;
  };
  const std::vector<Way>& ways() const;
  int candidates() const;  // how many were timed

 private:
  struct Impl;
  explicit Baseline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu

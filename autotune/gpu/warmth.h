// Whether a GPU has been busy for so long that its clock is that of a GPU that stays busy.
#pragma once

#include <algorithm>
#include <chrono>

namespace autotune::gpu {

// A GPU that has idled is held back by its power limit after 0.075 to 0.15 s of large products (one
// NVIDIA H200: 8192^3 in bf16 1380 us before and 1600 after).
inline constexpr double kWarmUpS = 0.25;
// Launches, or as many without a pause as a sample is the mean of, that are no shorter can hold a
// GPU at its power limit, where ratios may be others (kernels/gemm/NOTES.md, Whose clock it is).
inline constexpr double kLongUs = 50;

class Warmth {
 public:
  using Clock = std::chrono::steady_clock;

  // Samples of `sample_us` each kept the GPU busy, from `begin` to `end`.
  void note(Clock::time_point begin, Clock::time_point end, double sample_us) {
    if (sample_us < kLongUs) return;
    if (begin - last_ > kPause) since_ = begin;
    last_ = end;
  }

  // Seconds of long launches, short pauses among them, until nothing is to be expected of more.
  double lacking_s(Clock::time_point now) const {
    if (now - last_ > kPause) return kWarmUpS;
    return std::max(0.0, kWarmUpS - std::chrono::duration<double>(last_ - since_).count());
  }

 private:
  static constexpr std::chrono::milliseconds kPause{20};

  Clock::time_point since_{};
  Clock::time_point last_{};
};

}  // namespace autotune::gpu

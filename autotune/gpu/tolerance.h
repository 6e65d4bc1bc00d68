// How far a result may be from the reference and still be right.
#pragma once

#include "autotune/types.h"

namespace autotune::gpu {

struct Bounds {
  double frobenius;  // |out - ref|_F / |ref|_F
  double atol;       // an element's error is at most atol * rms(ref) + rtol * |ref|
  double rtol;
};

// For a GEMM with fp32 accumulation; tight enough to catch one dropped slice of k. `problem` is
// checked.
Bounds bounds_for(const Problem& problem);

}  // namespace autotune::gpu

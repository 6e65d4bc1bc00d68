// The activations by their definitions.
#pragma once

#include <cmath>

#include "autotune/types.h"

namespace autotune::test {

inline double exact_activation(double x, Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::relu:
      break;
  }
  return x < 0 ? 0 : x;
}

}  // namespace autotune::test

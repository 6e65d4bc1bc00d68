// The search space: for each kernel of a family the values that its parameters take.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace autotune::search {

struct ParameterRange {
  std::string name;
  std::vector<std::int32_t> values;
};

struct KernelSpace {
  std::string kernel;
  std::vector<ParameterRange> parameters;  // every parameter of the kernel, in its order
};

struct Space {
  std::string family;
  std::vector<KernelSpace> kernels;
  std::string origin;    // "built-in" or the file it was read from
  bool built_in = true;  // a custom space never crowns the shared winner
};

// Number of configs in the whole cartesian product of one kernel.
std::int64_t size_of(const KernelSpace& space);

// The i-th config (0 <= i < size_of) of a kernel's product; last parameter varies fastest.
Config config_at(const HostTwin& kernel, const KernelSpace& space, std::int64_t index);

}  // namespace autotune::search

// The search space: for each kernel of a family the values that its parameters take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace autotune::search {

struct ParameterRange {
  std::string name;
  std::vector<std::int32_t> values;  // each once
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

// Number of configs in the whole cartesian product of one kernel, or of some of its parameters; at
// most 2^63-1.
std::int64_t size_of(std::span<const ParameterRange> parameters);
std::int64_t size_of(const KernelSpace& space);

// The i-th config (0 <= i < size_of) of a kernel's product; last parameter varies fastest.
Config config_at(const HostTwin& kernel, const KernelSpace& space, std::int64_t index);

// bad_input, naming the space's origin, unless it is of this family, names only its kernels, and
// gives every parameter of each, in the kernel's order, at least one value inside lo..hi.
Expected<void> validate(const Space& space, const Family& family);

}  // namespace autotune::search

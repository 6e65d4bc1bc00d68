// Where a config's machine code comes from: the cache, else the compiler.
#pragma once

#include <filesystem>
#include <string>

#include "autotune/types.h"
#include "kernels/kernel.h"

namespace autotune::lookup {

struct Cubin {
  std::string image;
  bool cached = false;  // came from the cache
};

// `cache`: its file, empty for the user's. A cache that others could write to gives no code. What
// was compiled is kept in the cache where that can be written. `afresh` passes the cache by: for
// code that the driver refused. Errors: no_compiler (not cached and no NVRTC), failed (it does not
// compile, or not to what was predicted).
Expected<Cubin> cubin_of(const std::filesystem::path& cache, const Config& config,
                         const Problem& problem, const DeviceSpec& device, bool afresh);

}  // namespace autotune::lookup

// Where a config's machine code comes from: a store, else the compiler.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "autotune/types.h"
#include "cache/store.h"
#include "kernels/kernel.h"

namespace autotune::lookup {

struct Code {
  cache::CubinKey key;
  cache::CubinRecord cubin;
};

// What `store` holds for the config, by whichever compiler, the latest stored first; code that
// spills only where compiled_code() made it. nullopt where there is nothing sound, or where others
// could have written it.
std::optional<Code> stored_code(const cache::Store& store, const Config& config,
                                const Problem& problem, const DeviceSpec& device);

// As Nvrtc::compile_unchecked() has it. Errors: no_compiler (no NVRTC), failed (it does not
// compile, or not to what was predicted).
Expected<Code> compiled_code(const Config& config, const Problem& problem,
                             const DeviceSpec& device);

// Into the cache at `cache` (empty: the user's), where that can be written: the code runs whether
// or not it could be kept.
void keep_code(const std::filesystem::path& cache, const Code& code);

struct Cubin {
  std::string image;
  bool cached = false;  // came from the cache
};

// stored_code() of the cache at `cache` (empty: the user's), else compiled_code(), which is kept
// there where that can be written. `afresh` passes what is stored by: for code that the driver
// refused. Errors of compiled_code().
Expected<Cubin> cubin_of(const std::filesystem::path& cache, const Config& config,
                         const Problem& problem, const DeviceSpec& device, bool afresh);

}  // namespace autotune::lookup

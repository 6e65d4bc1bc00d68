// Matching a problem to what is known: the order of sources behind best_config().
#pragma once

#include <filesystem>
#include <span>

#include "autotune/autotune.h"
#include "autotune/io/builtin.h"
#include "cache/store.h"
#include "kernels/device_spec.h"
#include "search/check.h"
#include "search/space.h"

namespace autotune::lookup {

// What bounds an answer besides the device.
struct Bounds {
  const search::Space* space = nullptr;  // of the default config; null: the built-in one
  search::Limits limits;                 // the user's; every answer keeps them
};

// Where answers come from, best first. Any may be missing.
struct Sources {
  const cache::Store* store = nullptr;      // the user's cache
  std::span<const io::BuiltinTuned> tuned;  // winners that came with the program
};

// The winner for exactly this problem on this device (cache, then built-in); else the winner of the
// nearest problem on this device; else of the nearest on another device; else the performance
// model's choice. Every answer was checked to fit. `problem` must be checked(). Errors:
// nothing_fits.
Expected<BestConfig> answer(const Problem& problem, const DeviceSpec& device,
                            const Sources& sources, const Bounds& bounds = {});

// The same with the cache at `path` (empty: the user's) and what came with the program. A cache
// that cannot be read is skipped.
Expected<BestConfig> answer_from(const std::filesystem::path& path, const Problem& problem,
                                 const DeviceSpec& device);

}  // namespace autotune::lookup

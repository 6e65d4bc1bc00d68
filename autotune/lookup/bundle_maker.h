// What goes into a deployment bundle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/lookup/answer.h"
#include "cache/bundle.h"

namespace autotune::lookup {

struct BundleRow {
  BestConfig best;        // what a session answers from the bundle alone
  std::string compiler;   // of its code: "nvrtc 13.0"
  bool compiled = false;  // for this row; else the cache or a row before had it
};

struct MadeBundle {
  cache::Bundle bundle;
  std::vector<BundleRow> rows;  // one per problem
};

// The winners of `problems` on `device` (the cache's, else those that came with the program), and
// code for whatever a session with the bundle and no cache answers to each of them, tuned or not.
// Code that `cache` (may be null) does not hold is compiled; `compiling` is told before each.
// Errors: nothing_fits (the message names the problem), no_compiler, failed.
Expected<MadeBundle> make_bundle(const cache::BundleInfo& info,
                                 const std::vector<Problem>& problems, const DeviceSpec& device,
                                 const cache::Store* cache,
                                 const std::function<void(const BestConfig&)>& compiling);

}  // namespace autotune::lookup

// The actions of `autotune cache` between caches and files: merge, export, import.
#pragma once

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/types.h"
#include "cache/store.h"

namespace autotune::cli {

// The cache of --cache. For commands whose subject it is: one that cannot be opened is an error.
Expected<cache::Store> open_subject(const Options& options, cache::Access access, Output& output);
// The same, and one that cannot be written is an error too.
Expected<cache::Store> open_writable(const Options& options, Output& output);

// The winners whose problem `pattern` names on the GPU that `device` does; all where both are
// empty. bad_input for a GPU that neither we nor the cache know.
Expected<std::vector<cache::WinnerRecord>> winners_like(const cache::Store& store,
                                                        const std::string& pattern,
                                                        const std::string& device);

// The exit code.
Expected<int> merge_caches(const Options& options, Output& output);
Expected<int> export_winners(const Options& options, Output& output);
Expected<int> import_winners(const Options& options, Output& output);

}  // namespace autotune::cli

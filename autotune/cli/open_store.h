// The cache that a command works with.
#pragma once

#include <filesystem>
#include <optional>

#include "autotune/cli/options.h"
#include "autotune/cli/output.h"
#include "autotune/types.h"
#include "cache/store.h"

namespace autotune::cli {

// --cache, else the user's.
Expected<std::filesystem::path> cache_path(const Options& options);

// Warns where `--cache` names a file that is not there.
void warn_of_missing(const Options& options, Output& output);

// Opens it and tells what it has to say. A cache that the file system refuses is not needed to get
// a result: nullopt with a warning; so is one that is damaged. Errors: a file that is not ours, or
// not a file at all.
Expected<std::optional<cache::Store>> open_store(const Options& options, cache::Access access,
                                                 Output& output);

}  // namespace autotune::cli

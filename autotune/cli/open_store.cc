#include "autotune/cli/open_store.h"

#include <utility>

namespace autotune::cli {

Expected<std::filesystem::path> cache_path(const Options& options) {
  if (!options.cache.empty()) return std::filesystem::path(options.cache);
  return cache::default_path();
}

Expected<std::optional<cache::Store>> open_store(const Options& options, cache::Access access,
                                                 Output& output) {
  const auto path = cache_path(options);
  auto store = path ? cache::Store::open(*path, access)
                    : Expected<cache::Store>(tl::unexpected(path.error()));
  if (store) {
    if (!store->message().empty()) output.warn(store->message());
    return std::optional<cache::Store>(*std::move(store));
  }
  const Error& error = store.error();
  if (error.code == ErrorCode::foreign_file || error.code == ErrorCode::corrupt_file) {
    return tl::unexpected(error);
  }
  output.warn(error.message + "; going on without a cache");
  return std::optional<cache::Store>();
}

}  // namespace autotune::cli

#include "autotune/cli/open_store.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace autotune::cli {

Expected<std::filesystem::path> cache_path(const Options& options) {
  if (!options.cache.empty()) return std::filesystem::path(options.cache);
  return cache::default_path();
}

void warn_of_missing(const Options& options, Output& output) {
  std::error_code ignored;
  if (options.cache.empty() || std::filesystem::exists(options.cache, ignored)) return;
  output.warn(fmt::format("there is no cache {} yet", options.cache));
}

Expected<std::optional<cache::Store>> open_store(const Options& options, cache::Access access,
                                                 Output& output) {
  const auto go_on = [&output](const Error& why) {
    output.warn(why.message + "; going on without a cache");
    return std::optional<cache::Store>();
  };
  const auto path = cache_path(options);
  if (!path) return go_on(path.error());
  if (access == cache::Access::read_only) warn_of_missing(options, output);
  auto store = cache::Store::open(*path, access);
  if (!store) {
    const ErrorCode code = store.error().code;
    const bool wrong = code == ErrorCode::bad_input || code == ErrorCode::foreign_file;
    if (wrong) return tl::unexpected(store.error());
    return go_on(store.error());
  }
  if (!store->message().empty()) output.warn(store->message());
  return std::optional<cache::Store>(*std::move(store));
}

}  // namespace autotune::cli

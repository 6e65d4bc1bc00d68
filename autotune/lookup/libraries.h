// The stored answers and code of a session: the user's cache and a bundle.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "autotune/lookup/answer.h"
#include "autotune/lookup/cubin_source.h"
#include "cache/bundle.h"
#include "cache/store.h"

namespace autotune::lookup {

// Thread-safe: one caller at a time is at the databases. The cache is opened anew in a process that
// was forked since.
class Libraries {
 public:
  // Empty paths: none. A cache that cannot be opened is left out, which message() tells; errors are
  // the bundle's.
  static Expected<std::unique_ptr<Libraries>> open(const std::filesystem::path& cache,
                                                   const std::filesystem::path& bundle);
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // nullptr without a bundle.
  const cache::BundleInfo* bundle_info() const { return bundle_ ? &bundle_->info() : nullptr; }
  const std::string& message() const { return message_; }

  // What cache, bundle and program know of a problem, or the former two alone.
  Known known(const Problem& problem, const DeviceSpec& device);
  Known stored(const Problem& problem, const DeviceSpec& device);
  std::optional<Code> code(const Config& config, const Problem& problem, const DeviceSpec& device);
  // In the cache, where that can be read and written.
  void keep(const Code& code);

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  Libraries() = default;
  std::string open_cache();  // what there is to tell of it
  void abandon_cache();
  const cache::Store* cache();  // of this process; mutex_ is held
  Known known_by(std::span<const io::BuiltinTuned> tuned, const Problem& problem,
                 const DeviceSpec& device);

  std::filesystem::path cache_path_;
  std::string message_;
  std::mutex mutex_;
  std::optional<cache::Store> cache_;
  std::optional<cache::Bundle> bundle_;
  Recollection recollection_;
  unsigned generation_ = 0;  // fork_generation() when cache_ was opened
};

}  // namespace autotune::lookup

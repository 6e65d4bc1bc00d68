// A deployment bundle: one file with the winners of a device and their code, for programs that run
// where nothing is tuned, compiled or written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "autotune/types.h"
#include "cache/store.h"

namespace autotune::cache {

struct BundleInfo {
  std::string device;       // "NVIDIA H200"
  std::string fingerprint;  // fingerprint(device)
  std::string arch;         // "sm_90a": the code runs on GPUs of this one only
  std::string suite;        // what it was made for
  std::string version;      // of the program that made it
  std::int64_t time = 0;    // seconds since the epoch

  friend bool operator==(const BundleInfo&, const BundleInfo&) = default;
};

// The file is a line that names the format, the SHA-256 of all that follows, and the database.
// It is read into memory as a whole, so that what was checked is what is used.
class Bundle {
 public:
  // An empty one in memory, to be filled through store().
  static Expected<Bundle> create(const BundleInfo& info);
  // Whether write() may replace what is there: bad_input where that is neither a bundle, of any
  // format and in any state, nor an empty file.
  static Expected<void> check_place(const std::filesystem::path& file);
  // Publishes it by rename: a reader of `file` sees the old or the new one. io_failed.
  Expected<void> write(const std::filesystem::path& file) const;

  // io_failed where it cannot be read, foreign_file for what is no bundle or one of another
  // format, corrupt_file where anything differs from what was written.
  static Expected<Bundle> open(const std::filesystem::path& file);
  // The database alone, its SHA-256 not asked for; `name` stands for the file in messages. Errors
  // as of open().
  static Expected<Bundle> of_image(std::string_view image, const std::filesystem::path& name);

  const BundleInfo& info() const { return info_; }
  // Gives cubins whoever owns the file: to name a bundle is to trust it, like a shared library.
  const Store& store() const { return store_; }
  Store& store() { return store_; }

 private:
  Bundle(BundleInfo info, Store store) : info_(std::move(info)), store_(std::move(store)) {}

  BundleInfo info_;
  Store store_;
};

}  // namespace autotune::cache

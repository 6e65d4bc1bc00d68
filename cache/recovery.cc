#include "cache/recovery.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <system_error>
#include <thread>

#include "cache/schema.h"

namespace autotune::cache {
namespace {

namespace fs = std::filesystem;

// SQLite's own open file. A descriptor of ours would not do: closing it would drop every lock that
// this process holds on the file (POSIX locks belong to the process).
sqlite3_file* file_of(const Connection& connection) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection.handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  return file == nullptr || file->pMethods == nullptr ? nullptr : file;
}

// SQLite's exclusive lock on a file that is too damaged for SQLite to begin a transaction.
class ExclusiveLock {
 public:
  explicit ExclusiveLock(sqlite3_file* file) : file_(file) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{kPatienceMs};
    for (int attempt = 0; !held_ && std::chrono::steady_clock::now() < deadline; ++attempt) {
      held_ = climb();
      if (held_) break;
      file_->pMethods->xUnlock(file_, SQLITE_LOCK_NONE);
      std::this_thread::sleep_for(std::chrono::milliseconds{pause_ms(attempt)});
    }
  }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;
  ~ExclusiveLock() { file_->pMethods->xUnlock(file_, SQLITE_LOCK_NONE); }

  bool held() const { return held_; }

 private:
  bool climb() {
    for (const int level : {SQLITE_LOCK_SHARED, SQLITE_LOCK_RESERVED, SQLITE_LOCK_EXCLUSIVE}) {
      if (file_->pMethods->xLock(file_, level) != SQLITE_OK) return false;
    }
    return true;
  }

  sqlite3_file* file_;
  bool held_ = false;
};

fs::path free_name(const fs::path& file) {
  const std::string stem = fmt::format("{}.corrupt-{}", file.string(), std::time(nullptr));
  fs::path name = stem;
  std::error_code ignored;
  for (int i = 2; fs::exists(name, ignored); ++i) name = fmt::format("{}-{}", stem, i);
  return name;
}

}  // namespace

bool carries_our_mark(const Connection& connection) {
  constexpr sqlite3_int64 kOffset = 68;  // SQLite file format, section 1.3
  std::array<unsigned char, 4> bytes = {};
  sqlite3_file* file = file_of(connection);
  if (file == nullptr) return false;
  if (file->pMethods->xRead(file, bytes.data(), bytes.size(), kOffset) != SQLITE_OK) return false;
  std::uint32_t mark = 0;
  for (const unsigned char byte : bytes) mark = mark << 8 | byte;
  return mark == kApplicationId;
}

Expected<fs::path> move_aside(const Connection& connection) {
  sqlite3_file* file = file_of(connection);
  if (file == nullptr) return tl::unexpected(connection.error());
  const ExclusiveLock lock{file};
  if (!lock.held()) {
    return fail(ErrorCode::busy,
                fmt::format("cache {} is damaged, and another process has held it for {} s: try "
                            "again, or use another file (--cache)",
                            connection.path().string(), kPatienceMs / 1000));
  }
  int moved = 0;
  file->pMethods->xFileControl(file, SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) return fs::path{};

  // Symbolic links are resolved in SQLite's name of the file. The journal goes first: a journal
  // left behind would be rolled back into the fresh file.
  const fs::path from = sqlite3_db_filename(connection.handle(), "main");
  const fs::path to = free_name(from);
  std::error_code error;
  const fs::path journal = from.string() + "-journal";
  if (fs::exists(journal, error)) fs::rename(journal, to.string() + "-journal", error);
  if (!error) fs::rename(from, to, error);
  if (error) {
    return fail(ErrorCode::io_failed,
                fmt::format("cache {} is damaged and cannot be moved to {}: {}", from.string(),
                            to.string(), error.message()));
  }
  return to;
}

}  // namespace autotune::cache

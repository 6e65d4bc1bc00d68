#include "cache/recovery.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <system_error>
#include <thread>
#include <vector>

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

std::string damage_stands(const fs::path& file, const fs::path& copy, int error) {
  return fmt::format("cache {} is damaged and cannot be moved to {}: {}", file.string(),
                     copy.string(), std::generic_category().message(error));
}

// A file that did not exist before, for the owner alone; closes itself.
class NewFile {
 public:
  explicit NewFile(const fs::path& file) {
    const std::string stem = fmt::format("{}.corrupt-{}", file.string(), std::time(nullptr));
    path_ = stem;
    for (int i = 2; (descriptor_ = open_new()) < 0 && errno == EEXIST; ++i) {
      path_ = fmt::format("{}-{}", stem, i);
    }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  const fs::path& path() const { return path_; }
  bool is_open() const { return descriptor_ >= 0; }

  // False with errno where it fails.
  bool write(const char* bytes, std::size_t count) {
    while (count > 0) {
      const ssize_t written = ::write(descriptor_, bytes, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes += written;
      count -= static_cast<std::size_t>(written);
    }
    return true;
  }
  bool sync() { return fsync(descriptor_) == 0; }

 private:
  int open_new() const {
    return open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }

  fs::path path_;
  int descriptor_ = -1;
};

// Calls `take` with one piece of the file after the other, until it returns an errno. 0 or that.
template <class Take>
int for_each_piece(sqlite3_file* from, std::int64_t bytes, const Take& take) {
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::int64_t offset = 0; offset < bytes; offset += std::ssize(piece)) {
    const auto count = std::min<std::int64_t>(bytes - offset, std::ssize(piece));
    if (from->pMethods->xRead(from, piece.data(), static_cast<int>(count), offset) != SQLITE_OK) {
      return EIO;
    }
    if (const int error = take(piece.data(), static_cast<std::size_t>(count))) return error;
  }
  return 0;
}

// 0 or the errno that stood against it.
int copy_all(sqlite3_file* from, std::int64_t bytes, NewFile& to) {
  const int error = for_each_piece(from, bytes, [&](const char* piece, std::size_t count) {
    return to.write(piece, count) ? 0 : errno;
  });
  if (error != 0) return error;
  return to.sync() ? 0 : errno;
}

}  // namespace

std::optional<Fingerprint> fingerprint_of(const Connection& connection) {
  sqlite3_file* file = file_of(connection);
  sqlite3_int64 bytes = 0;
  if (file == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) return std::nullopt;
  Fingerprint print;
  print.bytes = bytes;
  const int code = file->pMethods->xRead(file, print.header.data(), print.header.size(), 0);
  // A file shorter than a header is read as far as it goes, with zeros behind.
  if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return std::nullopt;
  return print;
}

bool can_be_read(const Connection& connection) {
  sqlite3_file* file = file_of(connection);
  sqlite3_int64 bytes = 0;
  if (file == nullptr || file->pMethods->xFileSize(file, &bytes) != SQLITE_OK) return false;
  return for_each_piece(file, bytes, [](const char*, std::size_t) { return 0; }) == 0;
}

bool carries_our_mark(const Fingerprint& print) {
  constexpr std::size_t kOffset = 68;  // SQLite file format, section 1.3
  std::uint32_t mark = 0;
  for (std::size_t i = 0; i < 4; ++i) mark = mark << 8 | print.header[kOffset + i];
  return mark == kApplicationId;
}

Expected<fs::path> move_aside(const Connection& connection, const Fingerprint& seen) {
  sqlite3_file* file = file_of(connection);
  if (file == nullptr) return tl::unexpected(connection.error());
  const ExclusiveLock lock{file};
  if (!lock.held()) {
    return fail(ErrorCode::busy,
                fmt::format("cache {} is damaged, and another process has held it for {} s: try "
                            "again, or use another file (--cache)",
                            connection.path().string(), kPatienceMs / 1000));
  }
  if (fingerprint_of(connection) != seen) return fs::path{};

  // Symbolic links are resolved in SQLite's name of the file.
  const fs::path path = sqlite3_db_filename(connection.handle(), "main");
  NewFile copy{path};
  const int error = copy.is_open() ? copy_all(file, seen.bytes, copy) : errno;
  const auto give_up = [&](int number) {
    std::error_code ignored;
    if (copy.is_open()) fs::remove(copy.path(), ignored);
    return fail(ErrorCode::io_failed, damage_stands(path, copy.path(), number));
  };
  if (error != 0) return give_up(error);

  // The journal goes before the file is emptied: left behind, it would be rolled back into it.
  std::error_code moved;
  const fs::path journal = path.string() + "-journal";
  if (fs::exists(journal, moved)) fs::rename(journal, copy.path().string() + "-journal", moved);
  if (moved) return give_up(moved.value());
  const bool emptied = file->pMethods->xTruncate(file, 0) == SQLITE_OK &&
                       file->pMethods->xSync(file, SQLITE_SYNC_FULL) == SQLITE_OK;
  if (!emptied) return give_up(EIO);
  chmod(path.c_str(), 0600);  // as a new one; a file that others may write is not trusted anyway
  return copy.path();
}

}  // namespace autotune::cache

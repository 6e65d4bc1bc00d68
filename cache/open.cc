#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cache/impl.h"
#include "cache/recovery.h"
#include "cache/schema.h"
#include "cache/trust.h"

namespace autotune::cache {
namespace {

namespace fs = std::filesystem;
using Mode = Connection::Mode;

// A file up to this size is checked as a whole when it is opened for writing (some 0.1 s), a larger
// one without the cubins, which carry their own seals.
constexpr std::int64_t kWholeCheckBytes = 256LL << 20;

// Each of them may find the file damaged again, or emptied by another process.
constexpr int kMaxRecoveries = 5;

std::string reason(int error) { return std::generic_category().message(error); }

void add_line(std::string& message, const std::string& line) {
  if (!message.empty()) message += '\n';
  message += line;
}

// What a symbolic link leads to, also where nothing is there (yet).
fs::path end_of_links(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links) {
    path = path.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

// Folders 0700, the file 0600 and empty. mknod makes a file without a descriptor: closing one would
// drop the locks that another thread's connection may have taken on the file in between.
int create_file(const fs::path& path) {
  fs::path folder = path.root_path();
  for (const fs::path& part : path.parent_path().relative_path()) {
    folder /= part;
    struct stat info = {};
    if (stat(folder.c_str(), &info) == 0) continue;
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno;
  }
  const fs::path file = end_of_links(path);
  if (mknod(file.c_str(), S_IFREG | 0600, 0) != 0 && errno != EEXIST) return errno;
  return 0;
}

// 0 or the errno that stands against writing to an existing file: SQLite needs its folder as well.
int why_unwritable(const fs::path& file) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (error) return error.value();
  for (const auto& [path, mode] : {std::pair{real, W_OK}, {real.parent_path(), W_OK | X_OK}}) {
    if (faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) != 0) return errno;
  }
  return 0;
}

bool refuses_writing(int error) {
  return error == EACCES || error == EPERM || error == EROFS || error == ENOSPC || error == EDQUOT;
}

Expected<Content> look_into(const Connection& db) {
  auto transaction = Transaction::read(db);
  if (!transaction) return tl::unexpected(transaction.error());
  auto content = content_of(db);
  // There is nothing wrong with our statements, so the fault is in the file: its header asks for an
  // unknown schema format or text encoding.
  if (!content && (db.error_code() & 0xff) == SQLITE_ERROR) {
    content.error().code = ErrorCode::corrupt_file;
  }
  return content;
}

std::string unreadable(const fs::path& path) {
  return fmt::format("cache {} cannot be read as a whole: the disk fails; it was left alone",
                     path.string());
}

// Damaged pages show when they are read, which may be long after: look at once.
Expected<void> check_pages(const Connection& db) {
  std::int64_t pages = 0;
  std::int64_t page_bytes = 0;
  for (const auto& [sql, value] :
       {std::pair{"PRAGMA page_count", &pages}, {"PRAGMA page_size", &page_bytes}}) {
    auto statement = Statement::make(db, sql);
    if (!statement) return tl::unexpected(statement.error());
    const auto row = statement->step();
    if (!row) return tl::unexpected(row.error());
    statement->read(*value);
  }
  const auto clean = [&db](const char* sql) -> Expected<void> {
    auto finding = db.value_of(sql);
    if (finding && *finding != "ok") {
      // The check says the same of a page that the disk does not give and of a damaged one.
      if (!can_be_read(db)) return fail(ErrorCode::io_failed, unreadable(db.path()));
      finding = db.value_of(sql);
    }
    if (!finding) return tl::unexpected(finding.error());
    if (*finding == "ok") return {};
    return fail(ErrorCode::corrupt_file,
                fmt::format("cache {} is damaged: {}", db.path().string(), *finding));
  };
  if (pages * page_bytes <= kWholeCheckBytes) return clean("PRAGMA quick_check(1)");
  for (const char* sql : {"PRAGMA quick_check(device)", "PRAGMA quick_check(problem)",
                          "PRAGMA quick_check(run)", "PRAGMA quick_check(rejected)",
                          "PRAGMA quick_check(trial)", "PRAGMA quick_check(winner)"}) {
    if (auto result = clean(sql); !result) return result;
  }
  return {};
}

Expected<void> make_ready(const Connection& db) {
  const auto content = look_into(db);
  if (!content) return tl::unexpected(content.error());
  if (*content == Content::foreign || *content == Content::newer) {
    return tl::unexpected(refusal(db, *content));
  }
  if (const auto set = db.execute("PRAGMA synchronous = FULL"); !set) return set;
  const auto mode = db.value_of("PRAGMA journal_mode = DELETE");
  if (!mode) return tl::unexpected(mode.error());
  if (*mode != "delete") {
    return fail(ErrorCode::busy, fmt::format("cache {} is in journal mode {} and another process "
                                             "keeps it so: end that process, or use another file "
                                             "(--cache)",
                                             db.path().string(), *mode));
  }
  if (*content != Content::current) {
    if (const auto done = bring_up_to_date(db); !done) return done;
  }
  return check_pages(db);
}

struct Opened {
  std::optional<Connection> db;
  std::string message;
};

// Empty, or what was said about a file that had to be moved away; the caller opens anew.
Expected<std::string> recover(const Connection& db, const Fingerprint& seen) {
  if (!carries_our_mark(seen)) return tl::unexpected(refusal(db, Content::foreign));
  const auto moved = move_aside(db, seen);
  if (!moved) return tl::unexpected(moved.error());
  if (moved->empty()) return std::string{};
  return fmt::format("cache {} was damaged: it was moved to {} and a fresh one started",
                     db.path().string(), moved->string());
}

Expected<Opened> open_writer(const fs::path& path) {
  Opened opened;
  for (int recoveries = 0;; ++recoveries) {
    if (const int error = create_file(path); error != 0) {
      return fail(ErrorCode::io_failed,
                  fmt::format("cache {} cannot be created: {}", path.string(), reason(error)));
    }
    auto db = Connection::open(path, Mode::write);
    if (!db) return tl::unexpected(db.error());
    const auto seen = fingerprint_of(*db);
    const auto ready = make_ready(*db);
    if (ready) {
      opened.db = std::move(*db);
      return opened;
    }
    const bool damaged = ready.error().code == ErrorCode::corrupt_file;
    if (!damaged || !seen || recoveries == kMaxRecoveries) return tl::unexpected(ready.error());
    const auto told = recover(*db, *seen);
    if (!told) return tl::unexpected(told.error());
    if (!told->empty()) add_line(opened.message, *told);
  }
}

// A writer was killed half-way, and without permission to write its work cannot be rolled back.
bool needs_rollback(const Connection& db) {
  const int code = db.error_code();
  return code == SQLITE_READONLY_ROLLBACK || code == SQLITE_READONLY_RECOVERY ||
         code == SQLITE_READONLY_CANTINIT || (code & 0xff) == SQLITE_CANTOPEN;
}

Expected<Opened> open_reader(const fs::path& path) {
  Opened opened;
  const Mode mode = why_unwritable(path) == 0 ? Mode::read : Mode::read_only;
  auto db = Connection::open(path, mode);
  if (!db) return tl::unexpected(db.error());
  const auto seen = fingerprint_of(*db);
  const auto content = look_into(*db);
  if (!content) {
    if (mode == Mode::read_only && needs_rollback(*db)) {
      opened.message = fmt::format(
          "cache {} was left half written by a killed process and cannot be "
          "repaired here (read-only): its content is not used",
          path.string());
      return opened;
    }
    const bool foreign =
        content.error().code == ErrorCode::corrupt_file && seen && !carries_our_mark(*seen);
    return tl::unexpected(foreign ? refusal(*db, Content::foreign) : content.error());
  }
  if (*content == Content::foreign || *content == Content::newer) {
    return tl::unexpected(refusal(*db, *content));
  }
  if (*content == Content::current) opened.db = std::move(*db);
  if (*content == Content::older) {
    opened.message = fmt::format(
        "cache {} was written by an older version: its content is not used until something writes "
        "to it ('autotune tune', or 'autotune cache merge' of it into another)",
        path.string());
  }
  return opened;
}

// False where nothing is there; an error for what cannot be a database.
Expected<bool> exists_as_file(const fs::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return false;
    return fail(ErrorCode::io_failed,
                fmt::format("cache {} cannot be reached: {}", path.string(), reason(errno)));
  }
  if (S_ISREG(info.st_mode)) return true;
  return fail(ErrorCode::foreign_file,
              fmt::format("cache {} is {}: give a file (--cache)", path.string(),
                          S_ISDIR(info.st_mode) ? "a folder" : "not a regular file"));
}

}  // namespace

Expected<Store> Store::open(const fs::path& given, Access access) {
  std::error_code error;
  const fs::path path = fs::absolute(given, error);
  if (error || given.empty()) {
    return fail(ErrorCode::bad_input, fmt::format("'{}' is no file name for a cache: give one "
                                                  "(--cache)",
                                                  given.string()));
  }
  const auto exists = exists_as_file(path);
  if (!exists) return tl::unexpected(exists.error());

  auto impl = std::make_unique<Impl>();
  impl->path = path;
  std::optional<Error> not_written;
  if (access == Access::read_write) {
    const int obstacle = *exists ? why_unwritable(path) : create_file(path);
    if (obstacle != 0 && !refuses_writing(obstacle)) {
      return fail(ErrorCode::io_failed,
                  fmt::format("cache {} cannot be opened: {}", path.string(), reason(obstacle)));
    }
    if (obstacle != 0) {
      impl->message = fmt::format("cache {} cannot be written ({}): what is measured is not kept",
                                  path.string(), reason(obstacle));
    } else if (auto opened = open_writer(path)) {
      impl->db = std::move(opened->db);
      impl->message = std::move(opened->message);
      impl->writable = true;
    } else if (opened.error().code == ErrorCode::io_failed) {
      not_written = opened.error();
      impl->message = not_written->message + "\nwhat is measured is not kept";
    } else {
      return tl::unexpected(opened.error());
    }
  }
  if (!impl->writable && fs::exists(path, error)) {
    auto opened = open_reader(path);
    if (!opened) return tl::unexpected(not_written.value_or(opened.error()));
    impl->db = std::move(opened->db);
    if (!opened->message.empty()) add_line(impl->message, opened->message);
  }
  if (impl->db) {
    const std::string distrust = reason_to_distrust(path);
    impl->trusted = distrust.empty();
    if (!impl->trusted) {
      add_line(impl->message,
               fmt::format("cache {} gives no compiled kernels: {}", path.string(), distrust));
    }
  }
  return Store{std::move(impl)};
}

}  // namespace autotune::cache

#include "cache/sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <thread>
#include <utility>

namespace autotune::cache {
namespace {

using Clock = std::chrono::steady_clock;

// No cubin, log or key comes near it; a hostile file must not make us allocate a gigabyte.
constexpr int kMaxValueBytes = 256 << 20;

constexpr const char* kReadOnly = "PRAGMA query_only = ON";

constexpr std::string_view kDamaged =
    "; it is damaged: the next tuning run moves it aside and starts a fresh one";

}  // namespace

struct Connection::Patience {
  Clock::time_point start;

  static int wait(void* self, int attempt) {
    auto& patience = *static_cast<Patience*>(self);
    const auto now = Clock::now();
    if (attempt == 0) patience.start = now;
    if (now - patience.start > std::chrono::milliseconds{kPatienceMs}) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds{pause_ms(attempt)});
    return 1;
  }
};

int pause_ms(int attempt) {
  // Twice as long each time up to 64 ms, with jitter so that processes do not knock in step.
  thread_local std::minstd_rand random{std::random_device{}()};
  const int longest = 1 << std::min(attempt, 6);
  return 1 + static_cast<int>(random() % static_cast<unsigned>(longest));
}

Expected<Connection> Connection::open(const std::filesystem::path& path, Mode mode) {
  const int flags = mode == Mode::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  auto connection = open_with(path.c_str(), flags, path);
  if (!connection || mode == Mode::write) return connection;
  if (auto set = connection->execute(kReadOnly); !set) return tl::unexpected(set.error());
  return connection;
}

Expected<Connection> Connection::in_memory(const std::filesystem::path& name) {
  return open_with(":memory:", SQLITE_OPEN_READWRITE, name);
}

Expected<Connection> Connection::of_image(std::string_view image,
                                          const std::filesystem::path& name) {
  auto connection = in_memory(name);
  if (!connection) return connection;
  auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
  if (bytes == nullptr) return fail(ErrorCode::failed, "out of memory");
  std::copy(image.begin(), image.end(), bytes);
  const auto size = static_cast<sqlite3_int64>(image.size());
  const int code =
      sqlite3_deserialize(connection->handle(), "main", bytes, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK) return tl::unexpected(connection->error());
  if (auto set = connection->execute(kReadOnly); !set) return tl::unexpected(set.error());
  return connection;
}

Expected<std::string> Connection::image() const {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, decltype(&sqlite3_free)> bytes(
      sqlite3_serialize(handle(), "main", &size, 0), sqlite3_free);
  if (bytes == nullptr) return fail(ErrorCode::failed, "out of memory");
  return std::string(reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size));
}

Expected<Connection> Connection::open_with(const char* file, int flags,
                                           const std::filesystem::path& path) {
  Connection connection;
  connection.path_ = path;
  connection.patience_ = std::make_shared<Patience>();
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file, &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  connection.handle_.reset(handle);
  if (handle == nullptr) return fail(ErrorCode::failed, "out of memory");
  sqlite3_extended_result_codes(handle, 1);
  if (code != SQLITE_OK) return tl::unexpected(connection.error());

  sqlite3_busy_handler(handle, Patience::wait, connection.patience_.get());
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  // Only settings that do not read the file: what it is comes out later.
  if (auto set = connection.execute("PRAGMA cell_size_check = ON"); !set) {
    return tl::unexpected(set.error());
  }
  return connection;
}

Expected<void> Connection::execute(const char* sql) const {
  const int code = sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(error());
  return {};
}

Expected<std::string> Connection::value_of(const char* sql) const {
  std::string value;
  auto statement = Statement::make(*this, sql);
  if (!statement) return tl::unexpected(statement.error());
  const auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  if (*row) statement->read(value);
  return value;
}

Error Connection::error() const {
  error_code_ = sqlite3_extended_errcode(handle());
  const auto say = [this](ErrorCode kind, std::string_view advice) {
    return Error{kind,
                 fmt::format("cache {}: {}{}", path_.string(), sqlite3_errmsg(handle()), advice)};
  };
  switch (error_code_ & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return say(ErrorCode::busy, fmt::format("; another process has held it for {} s: try again, "
                                              "or use another file (--cache)",
                                              kPatienceMs / 1000));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return say(ErrorCode::corrupt_file, kDamaged);
    case SQLITE_FULL:
      return say(ErrorCode::io_failed, "; free some space, or use another file (--cache)");
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return say(
          ErrorCode::io_failed,
          "; check the file, its folder and their permissions, or use another file (--cache)");
    case SQLITE_CONSTRAINT:
      return say(ErrorCode::bad_input, "");
    default:
      return say(ErrorCode::failed, "");
  }
}

Expected<Statement> Statement::prepare(const Connection& connection, std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection.handle(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(connection.error());
  return Statement{connection, statement};
}

void Statement::note(int code) {
  if (code != SQLITE_OK && bind_code_ == SQLITE_OK) bind_code_ = code;
}

void Statement::bind(std::int64_t value) {
  note(sqlite3_bind_int64(statement_.get(), ++parameter_, value));
}

void Statement::bind(double value) {
  note(sqlite3_bind_double(statement_.get(), ++parameter_, value));
}

void Statement::bind(std::string_view text) {
  // A null pointer would bind NULL where the empty text is meant.
  const char* data = text.data() == nullptr ? "" : text.data();
  note(sqlite3_bind_text64(statement_.get(), ++parameter_, data, text.size(), SQLITE_TRANSIENT,
                           SQLITE_UTF8));
}

void Statement::bind_blob(std::string_view bytes) {
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  note(sqlite3_bind_blob64(statement_.get(), ++parameter_, data, bytes.size(), SQLITE_STATIC));
}

void Statement::bind_null() { note(sqlite3_bind_null(statement_.get(), ++parameter_)); }

Expected<bool> Statement::step() {
  if (bind_code_ != SQLITE_OK) return tl::unexpected(connection_->error());
  column_ = 0;
  sound_ = true;
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return tl::unexpected(connection_->error());
  }
}

Expected<void> Statement::run() {
  for (;;) {
    const auto row = step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return {};
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  parameter_ = 0;
  bind_code_ = SQLITE_OK;
}

bool Statement::next_is_null() {
  return sqlite3_column_type(statement_.get(), column_) == SQLITE_NULL;
}

void Statement::read(std::int64_t& value) {
  value = sqlite3_column_int64(statement_.get(), column_++);
}

void Statement::read(std::int32_t& value) {
  std::int64_t wide = 0;
  read(wide);
  if (!std::in_range<std::int32_t>(wide)) return unsound();
  value = static_cast<std::int32_t>(wide);
}

void Statement::read(bool& value) {
  std::int64_t wide = 0;
  read(wide);
  value = wide != 0;
}

void Statement::read(double& value) {
  value = next_is_null() ? std::numeric_limits<double>::quiet_NaN()
                         : sqlite3_column_double(statement_.get(), column_);
  ++column_;
}

void Statement::read(std::string& value) {
  // The blob call gives the bytes of text and of blobs alike, with whatever they hold.
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column_));
  const int size = sqlite3_column_bytes(statement_.get(), column_++);
  value.assign(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : size);
}

Expected<Transaction> Transaction::read(const Connection& connection) {
  const auto begun = connection.execute("BEGIN");
  if (!begun) return tl::unexpected(begun.error());
  return Transaction{connection};
}

Expected<Transaction> Transaction::write(const Connection& connection) {
  const auto begun = connection.execute("BEGIN IMMEDIATE");
  if (!begun) return tl::unexpected(begun.error());
  return Transaction{connection};
}

Transaction::~Transaction() {
  // SQLite itself has rolled back after some errors (disk full, I/O).
  if (connection_ == nullptr || sqlite3_get_autocommit(connection_->handle()) != 0) return;
  sqlite3_exec(connection_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Expected<void> Transaction::commit() {
  const auto done = connection_->execute("COMMIT");
  if (!done) return done;
  connection_ = nullptr;
  return {};
}

}  // namespace autotune::cache

// SQLite behind move-only owners: a connection with this project's settings, statements, and
// transactions. SQLite's result codes become Error here and nowhere else.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune::cache {

class Connection {
 public:
  enum class Mode : std::uint8_t {
    write,     // reads and writes
    read,      // never changes content; may roll back what a killed writer left half done
    read_only  // changes nothing at all, for files or folders without write permission
  };

  // Opens an existing file, whatever it holds: nothing is read yet.
  static Expected<Connection> open(const std::filesystem::path& path, Mode mode);

  // A database in memory: an empty one to be filled, or one to be read with the content that
  // image() gave. `name` stands for the path in messages.
  static Expected<Connection> in_memory(const std::filesystem::path& name);
  static Expected<Connection> of_image(std::string_view image, const std::filesystem::path& name);
  // The content as the bytes of a database file.
  Expected<std::string> image() const;

  // Statements without parameters or results.
  Expected<void> execute(const char* sql) const;
  // The text of the first column of the first row; empty where there is none.
  Expected<std::string> value_of(const char* sql) const;

  // What the call that just failed on this connection means.
  Error error() const;
  // SQLite's own extended code behind the last error(), for the few callers that tell them apart.
  int error_code() const { return error_code_; }
  sqlite3* handle() const { return handle_.get(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
  };
  struct Patience;

  Connection() = default;
  static Expected<Connection> open_with(const char* file, int flags,
                                        const std::filesystem::path& path);

  std::filesystem::path path_;
  mutable int error_code_ = SQLITE_OK;
  std::shared_ptr<Patience> patience_;  // outlives handle_, whose busy handler points to it
  std::unique_ptr<sqlite3, Closer> handle_;
};

// How long anyone waits for another process' lock, and the pause before attempt number `attempt`.
inline constexpr int kPatienceMs = 60'000;
int pause_ms(int attempt);

// Binds by order: each bind() fills the next parameter, each read() takes the next column. Errors
// of binding surface in step().
class Statement {
 public:
  template <class... Values>
  static Expected<Statement> make(const Connection& connection, std::string_view sql,
                                  const Values&... values) {
    auto statement = prepare(connection, sql);
    if (statement) (statement->bind(values), ...);
    return statement;
  }

  void bind(std::int64_t value);
  void bind(std::int32_t value) { bind(std::int64_t{value}); }
  void bind(bool value) { bind(std::int64_t{value}); }
  void bind(double value);  // NaN is stored as NULL
  void bind(std::string_view text);
  void bind(const std::string& text) { bind(std::string_view{text}); }
  void bind(const char* text) { bind(std::string_view{text}); }
  void bind_blob(std::string_view bytes);  // must live until the last step()
  void bind_null();

  // True when there is a row to read.
  Expected<bool> step();
  // Steps to the end.
  Expected<void> run();
  // Back to before the first step, with no parameter bound and no lock held.
  void reset();

  bool next_is_null();  // does not take the column
  void skip() { ++column_; }
  void read(std::int64_t& value);
  void read(std::int32_t& value);
  void read(bool& value);
  void read(double& value);  // NULL is NaN
  void read(std::string& value);
  // False when a column of this row held what its field cannot (a damaged or foreign value).
  bool sound() const { return sound_; }
  void unsound() { sound_ = false; }

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };

  static Expected<Statement> prepare(const Connection& connection, std::string_view sql);
  Statement(const Connection& connection, sqlite3_stmt* statement)
      : connection_(&connection), statement_(statement) {}
  void note(int code);

  const Connection* connection_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  int parameter_ = 0;
  int column_ = 0;
  int bind_code_ = SQLITE_OK;
  bool sound_ = true;
};

// Rolls back unless committed.
class Transaction {
 public:
  static Expected<Transaction> read(const Connection& connection);   // a consistent view
  static Expected<Transaction> write(const Connection& connection);  // BEGIN IMMEDIATE
  Transaction(Transaction&& other) noexcept : connection_(other.connection_) {
    other.connection_ = nullptr;
  }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Expected<void> commit();

 private:
  explicit Transaction(const Connection& connection) : connection_(&connection) {}
  const Connection* connection_;
};

}  // namespace autotune::cache

// Folders and files without write permission, as an ordinary user meets them.
#include <sqlite3.h>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

// Runs in a child that is no root; the folder is made by that user.
template <class Work>
std::string as_ordinary_user(const Work& work) {
  return in_child([&]() -> std::string {
    if (!become_ordinary_user()) return "cannot become an ordinary user";
    const TempFolder folder;
    return work(folder);
  });
}

std::string fill(const fs::path& file) {
  auto store = Store::open(file, Access::read_write);
  if (!store) return store.error().message;
  TrialRecord trial = sample_trial(1);
  if (!store->record(trial) || !store->crown({trial})) return "cannot fill the store";
  return store->put_cubin(sample_cubin_key(1), sample_cubin(1)) ? "" : "cannot put a cubin";
}

// The store answers, keeps nothing, and says so where it was to be written.
std::string check_answers_only(const fs::path& file) {
  for (const Access access : {Access::read_only, Access::read_write}) {
    auto store = Store::open(file, access);
    if (!store) return store.error().message;
    if (store->writable()) return "it claims to be writable";
    const bool told = store->message().find("cannot be written") != std::string::npos;
    if (told != (access == Access::read_write)) return "message: " + store->message();
    const auto winner = store->winner(sample_trial(1).key.problem_key, kDevice);
    if (!winner) return winner.error().message;
    if (!*winner) return "the winner is not found";
    const auto cubin = store->cubin(sample_cubin_key(1));
    if (!cubin || !*cubin) return "the cubin is not found";
    TrialRecord trial = sample_trial(2);
    const auto recorded = store->record(trial);
    if (recorded || recorded.error().code != ErrorCode::io_failed) return "it was written";
  }
  return "";
}

TEST_CASE("a read-only folder answers and keeps nothing") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          if (std::string failure = fill(folder / "in/cache.db"); !failure.empty()) return failure;
          ::chmod((folder / "in").c_str(), 0500);
          return check_answers_only(folder / "in/cache.db");
        }) == "");
}

TEST_CASE("a read-only file answers and keeps nothing") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          if (std::string failure = fill(folder / "in/cache.db"); !failure.empty()) return failure;
          ::chmod((folder / "in/cache.db").c_str(), 0400);
          return check_answers_only(folder / "in/cache.db");
        }) == "");
}

TEST_CASE("a folder that cannot be created makes an empty store with a message") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          fs::create_directory(folder / "closed");
          ::chmod((folder / "closed").c_str(), 0500);
          auto store = Store::open(folder / "closed/autotune/cache.db", Access::read_write);
          if (!store) return store.error().message;
          if (store->writable() || store->message().empty()) return "it claims to be writable";
          if (!store->winners("gemm", "")->empty()) return "rows out of nowhere";
          return "";
        }) == "");
}

TEST_CASE("a file that cannot be read is an error with its name") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          const fs::path file = folder / "in/cache.db";
          if (std::string failure = fill(file); !failure.empty()) return failure;
          ::chmod(file.c_str(), 0);
          auto store = Store::open(file, Access::read_only);
          if (store) return "it was opened";
          if (store.error().code != ErrorCode::io_failed) return "wrong code";
          return store.error().message.find(file.string()) != std::string::npos ? "" : "no name";
        }) == "");
}

// Copies a cache with its journal from the middle of a large transaction: what a killed writer
// leaves behind.
std::string leave_half_written(const fs::path& file, const fs::path& copy) {
  if (std::string failure = fill(file); !failure.empty()) return failure;
  sqlite3* db = nullptr;
  if (sqlite3_open(file.c_str(), &db) != SQLITE_OK) return "cannot open";
  const char* sql =
      "PRAGMA cache_size = 2; BEGIN IMMEDIATE; DELETE FROM winner;"
      "WITH RECURSIVE counter (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counter WHERE i < 400)"
      "INSERT INTO device (fingerprint) SELECT printf('%.900c%d', 'x', i) FROM counter";
  const bool begun = sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
  const fs::path journal = file.string() + "-journal";
  const bool hot = begun && fs::exists(journal) && fs::file_size(journal) > 512;
  if (hot) {
    fs::copy_file(file, copy);
    fs::copy_file(journal, copy.string() + "-journal");
  }
  sqlite3_close(db);
  return hot ? "" : "no journal was left";
}

TEST_CASE("a reader that may write repairs what a killed writer left") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          const fs::path file = folder / "copy.db";
          std::string failure = leave_half_written(folder / "in/cache.db", file);
          if (!failure.empty()) return failure;
          auto store = Store::open(file, Access::read_only);
          if (!store) return store.error().message;
          const auto problems = store->verify();
          if (!problems || !problems->findings.empty()) return "it is not sound";
          const auto winner = store->winner(sample_trial(1).key.problem_key, kDevice);
          return winner && *winner ? "" : "the winner is not back";
        }) == "");
}

TEST_CASE("what a killed writer left in a read-only folder is a miss with a warning") {
  CHECK(as_ordinary_user([](const TempFolder& folder) -> std::string {
          fs::create_directory(folder / "closed");
          const fs::path file = folder / "closed/cache.db";
          std::string failure = leave_half_written(folder / "in/cache.db", file);
          if (!failure.empty()) return failure;
          ::chmod((folder / "closed").c_str(), 0500);
          for (const Access access : {Access::read_only, Access::read_write}) {
            auto store = Store::open(file, access);
            if (!store) return store.error().message;
            if (store->writable()) return "it claims to be writable";
            if (store->message().find("half written") == std::string::npos) {
              return "message: " + store->message();
            }
            if (!store->winners("gemm", "")->empty()) return "half-written rows were read";
          }
          return "";
        }) == "");
}

}  // namespace
}  // namespace autotune::cache

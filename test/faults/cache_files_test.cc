// Files that are damaged, foreign, newer, or no files: refused or moved aside, never overwritten.
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "cache/schema.h"
#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

constexpr int kTrials = 40;

std::string bytes_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

void put_bytes(const fs::path& file, const std::string& bytes) {
  std::ofstream{file, std::ios::binary} << bytes;
}

void execute(const fs::path& file, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

// The bytes of a cache with kTrials trials and a winner.
const std::string& sound_cache() {
  static const std::string bytes = [] {
    const TempFolder folder;
    {
      auto store = Store::open(folder / "cache.db", Access::read_write);
      REQUIRE(store);
      for (int i = 0; i < kTrials; ++i) {
        TrialRecord trial = sample_trial(i);
        trial.log.assign(500, 'x');
        REQUIRE(store->record(trial));
      }
      REQUIRE(store->crown({sample_trial(0)}));
    }
    return bytes_of(folder / "cache.db");
  }();
  return bytes;
}

std::size_t trials_in(const Store& store) {
  const auto trials = store.trials(sample_trial(0).key.problem_key, kDevice);
  REQUIRE(trials);
  return trials->size();
}

// The two endings that a damaged cache may have for a writer. True when it was moved aside.
bool refused_or_moved_aside(const TempFolder& folder, const std::string& damaged) {
  const fs::path file = folder / "cache.db";
  auto store = Store::open(file, Access::read_write);
  if (!store) {
    CHECK(store.error().code == ErrorCode::foreign_file);
    CHECK(bytes_of(file) == damaged);
    return false;
  }
  const auto aside = named(folder.path(), "cache.db.corrupt-");
  REQUIRE(aside.size() == 1);
  CHECK(bytes_of(aside.front()) == damaged);
  CHECK(store->message().find(aside.front().string()) != std::string::npos);
  CHECK(store->writable());
  CHECK(trials_in(*store) == 0);
  TrialRecord trial = sample_trial(1);
  CHECK(store->record(trial));
  CHECK(mode_of(file) == 0600);
  return true;
}

TEST_CASE("a flipped bit of the header loses nothing silently") {
  int moved = 0;
  int refused = 0;
  int harmless = 0;
  for (int bit = 0; bit < 100 * 8; bit += 5) {
    const TempFolder folder;
    std::string damaged = sound_cache();
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    put_bytes(folder / "cache.db", damaged);
    CAPTURE(bit);
    auto reader = Store::open(folder / "cache.db", Access::read_only);
    if (!reader) {
      const ErrorCode code = reader.error().code;
      CHECK((code == ErrorCode::corrupt_file || code == ErrorCode::foreign_file));
      CHECK(bytes_of(folder / "cache.db") == damaged);
    }
    auto store = Store::open(folder / "cache.db", Access::read_write);
    if (!store) {
      ++refused;
      CHECK(store.error().code == ErrorCode::foreign_file);
      CHECK(bytes_of(folder / "cache.db") == damaged);
    } else if (const auto aside = named(folder.path(), "cache.db.corrupt-"); !aside.empty()) {
      ++moved;
      CHECK_FALSE(store->message().empty());
      CHECK(bytes_of(aside.front()) == damaged);
      CHECK(trials_in(*store) == 0);
    } else {
      ++harmless;
      CHECK(trials_in(*store) == kTrials);
    }
  }
  CHECK(moved > 10);
  CHECK(refused > 10);
  CHECK(harmless > 10);
}

TEST_CASE("a truncated cache is moved aside") {
  for (const std::size_t size : {sound_cache().size() - 4096, sound_cache().size() / 2,
                                 std::size_t{4096}, std::size_t{3000}, std::size_t{100}}) {
    CAPTURE(size);
    const TempFolder folder;
    const std::string damaged = sound_cache().substr(0, size);
    put_bytes(folder / "cache.db", damaged);
    const auto reader = Store::open(folder / "cache.db", Access::read_only);
    REQUIRE_FALSE(reader);
    CHECK(reader.error().code == ErrorCode::corrupt_file);
    CHECK(bytes_of(folder / "cache.db") == damaged);
    CHECK(refused_or_moved_aside(folder, damaged));
  }
}

TEST_CASE("a few bytes of what may have been a cache are left alone") {
  const TempFolder folder;
  const std::string damaged = sound_cache().substr(0, 50);
  put_bytes(folder / "cache.db", damaged);
  CHECK_FALSE(refused_or_moved_aside(folder, damaged));
}

TEST_CASE("a page full of rubbish is noticed by the writer that opens it") {
  const std::size_t pages = sound_cache().size() / 4096;
  REQUIRE(pages > 8);
  for (const std::size_t page : {std::size_t{1}, pages / 2, pages - 1}) {
    CAPTURE(page);
    const TempFolder folder;
    std::string damaged = sound_cache();
    damaged.replace(page * 4096, 4096, 4096, '\xee');
    put_bytes(folder / "cache.db", damaged);
    CHECK(refused_or_moved_aside(folder, damaged));
  }
}

TEST_CASE("a second damage within the same second gets a name of its own") {
  const TempFolder folder;
  const std::string damaged = sound_cache().substr(0, 5000);
  for (int i = 0; i < 3; ++i) {
    put_bytes(folder / "cache.db", damaged);
    REQUIRE(Store::open(folder / "cache.db", Access::read_write));
  }
  CHECK(named(folder.path(), "cache.db.corrupt-").size() == 3);
}

TEST_CASE("the journal goes with a damaged cache, so that it does not reach the fresh one") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", sound_cache().substr(0, 5000));
  put_bytes(folder / "cache.db-journal", "not a journal");
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  CHECK_FALSE(fs::exists(folder / "cache.db-journal"));
  CHECK(store->verify()->findings.empty());
}

TEST_CASE("a symbolic link stays; what it leads to is moved aside") {
  const TempFolder folder;
  fs::create_directory(folder / "real");
  put_bytes(folder / "real/cache.db", sound_cache().substr(0, 5000));
  fs::create_symlink("real/cache.db", folder / "link.db");
  auto store = Store::open(folder / "link.db", Access::read_write);
  REQUIRE(store);
  CHECK(fs::is_symlink(folder / "link.db"));
  CHECK(named(folder / "real", "cache.db.corrupt-").size() == 1);
  CHECK(fs::is_regular_file(folder / "real/cache.db"));
}

TEST_CASE("several writers that find the same damage move it aside once") {
  const TempFolder folder;
  const std::string damaged = sound_cache().substr(0, 9000);
  put_bytes(folder / "cache.db", damaged);
  const std::string said = in_child([&] {
    std::vector<pid_t> writers;
    for (int i = 0; i < 6; ++i) {
      writers.push_back(fork());
      if (writers.back() != 0) continue;
      auto store = Store::open(folder / "cache.db", Access::read_write);
      TrialRecord trial = sample_trial(i);
      _exit(store && store->record(trial) ? 0 : 1);
    }
    std::string failures;
    for (const pid_t writer : writers) {
      int status = 0;
      waitpid(writer, &status, 0);
      if (status != 0) failures += "a writer failed; ";
    }
    return failures;
  });
  CHECK(said == "");
  CHECK(named(folder.path(), "cache.db.corrupt-").size() == 1);
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  CHECK(trials_in(*store) == 6);
}

TEST_CASE("a writer that has the file open goes on in the fresh one") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", sound_cache());
  auto early = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(early);
  const std::string said = in_child([&] {
    // Another process: closing a descriptor of the file here would drop the first one's locks.
    put_bytes(folder / "cache.db", sound_cache().substr(0, 9000));
    auto late = Store::open(folder / "cache.db", Access::read_write);
    TrialRecord trial = sample_trial(1);
    return late && late->record(trial) ? std::string{} : std::string{"not recorded"};
  });
  CHECK(said == "");
  CHECK(named(folder.path(), "cache.db.corrupt-").size() == 1);
  TrialRecord trial = sample_trial(2);
  CHECK(early->record(trial));
  CHECK(trials_in(*early) == 2);
  CHECK(early->verify()->findings.empty());
}

TEST_CASE("a writer that has the file open makes tables where another one had to leave it empty") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", sound_cache());
  auto early = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(early);
  CHECK(in_child([&] {
          put_bytes(folder / "cache.db", "");
          return std::string{};
        }) == "");
  TrialRecord trial = sample_trial(2);
  CHECK(early->record(trial));
  CHECK(trials_in(*early) == 1);
  CHECK(early->verify()->findings.empty());
}

TEST_CASE("a damaged cache that cannot be moved aside is said to be so") {
  const TempFolder folder;
  const fs::path file = folder / std::string(240, 'x');  // with what is put behind it too long
  put_bytes(file, sound_cache().substr(0, 9000));
  const auto store = Store::open(file, Access::read_write);
  REQUIRE_FALSE(store);
  CHECK(store.error().message.find("cannot be moved to") != std::string::npos);
  CHECK(bytes_of(file).size() == 9000);
}

void check_left_alone(const TempFolder& folder, const std::string& word) {
  const std::string before = bytes_of(folder / "cache.db");
  for (const Access access : {Access::read_write, Access::read_only}) {
    const auto store = Store::open(folder / "cache.db", access);
    REQUIRE_FALSE(store);
    CHECK(store.error().code == ErrorCode::foreign_file);
    CHECK(store.error().message.find((folder / "cache.db").string()) != std::string::npos);
    CHECK(store.error().message.find(word) != std::string::npos);
  }
  CHECK(bytes_of(folder / "cache.db") == before);
  CHECK(named(folder.path(), "cache.db").size() == 1);
}

TEST_CASE("another application's database is left alone") {
  const TempFolder folder;
  execute(folder / "cache.db", "CREATE TABLE diary (day TEXT); PRAGMA application_id = 1234");
  check_left_alone(folder, "not an autotune cache");
}

TEST_CASE("a database without an application id is left alone") {
  const TempFolder folder;
  execute(folder / "cache.db", "CREATE TABLE trial (day TEXT)");
  check_left_alone(folder, "not an autotune cache");
}

TEST_CASE("another application's damaged database is left alone") {
  const TempFolder folder;
  execute(folder / "cache.db", "CREATE TABLE diary (day TEXT); PRAGMA application_id = 1234");
  fs::resize_file(folder / "cache.db", 5000);
  check_left_alone(folder, "not an autotune cache");
}

TEST_CASE("a text file is left alone") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", std::string(3000, 'n'));
  check_left_alone(folder, "not an autotune cache");
}

TEST_CASE("the cache of a newer program is left alone") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", sound_cache());
  execute(folder / "cache.db", "PRAGMA user_version = 99");
  check_left_alone(folder, "newer");
}

TEST_CASE("a cache that a newer program migrates while it is open is not written any more") {
  const TempFolder folder;
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  execute(folder / "cache.db", "PRAGMA user_version = 99");
  TrialRecord trial = sample_trial(1);
  const auto recorded = store->record(trial);
  REQUIRE_FALSE(recorded);
  CHECK(recorded.error().code == ErrorCode::foreign_file);
}

TEST_CASE("a cache with missing tables is moved aside") {
  const TempFolder folder;
  put_bytes(folder / "cache.db", sound_cache());
  execute(folder / "cache.db", "DROP TABLE cubin");
  CHECK(refused_or_moved_aside(folder, bytes_of(folder / "cache.db")));
}

TEST_CASE("a folder, a pipe and a file used as a folder are refused") {
  const TempFolder folder;
  fs::create_directory(folder / "cache.db");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  put_bytes(folder / "plain", "text");
  for (const Access access : {Access::read_write, Access::read_only}) {
    const auto directory = Store::open(folder / "cache.db", access);
    REQUIRE_FALSE(directory);
    CHECK(directory.error().code == ErrorCode::foreign_file);
    CHECK(directory.error().message.find("folder") != std::string::npos);
    const auto pipe = Store::open(folder / "pipe", access);
    REQUIRE_FALSE(pipe);
    CHECK(pipe.error().code == ErrorCode::foreign_file);
    const auto below = Store::open(folder / "plain/cache.db", access);
    REQUIRE_FALSE(below);
    CHECK(below.error().code == ErrorCode::io_failed);
  }
  CHECK(fs::is_directory(folder / "cache.db"));
}

}  // namespace
}  // namespace autotune::cache

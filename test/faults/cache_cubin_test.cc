// Damage inside rows, which SQLite's own check does not see.
#include <sqlite3.h>

#include <fstream>
#include <iterator>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

struct Prepared {
  TempFolder folder;
  fs::path file = folder / "cache.db";

  Prepared() {
    auto store = Store::open(file, Access::read_write);
    REQUIRE(store);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(store->put_cubin(sample_cubin_key(i), sample_cubin(i)));
      TrialRecord trial = sample_trial(i);
      REQUIRE(store->record(trial));
    }
  }

  void execute(const char* sql) const {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_changes(db) == 1);
    sqlite3_close(db);
  }
};

// Cubin 1 is a miss and gone, the others are hits, and a new one takes its place.
void check_only_cubin_1_is_lost(const Prepared& prepared) {
  auto reader = Store::open(prepared.file, Access::read_only);
  REQUIRE(reader);
  const auto unread = reader->cubin(sample_cubin_key(1));
  REQUIRE(unread);
  CHECK_FALSE(*unread);

  auto store = Store::open(prepared.file, Access::read_write);
  REQUIRE(store);
  CHECK(store->message().empty());
  const auto before = store->verify();
  REQUIRE(before);
  CHECK(before->findings.size() == 1);
  CHECK(before->cubins == 3);
  const auto miss = store->cubin(sample_cubin_key(1));
  REQUIRE(miss);
  CHECK_FALSE(*miss);
  for (const int i : {0, 2}) {
    const auto hit = store->cubin(sample_cubin_key(i));
    REQUIRE((hit && *hit));
    CHECK((*hit)->image == sample_cubin(i).image);
  }
  REQUIRE(store->put_cubin(sample_cubin_key(1), sample_cubin(1)));
  CHECK(store->cubin(sample_cubin_key(1))->has_value());
}

TEST_CASE("a flipped bit in a cubin on disk is a miss") {
  const Prepared prepared;
  std::fstream file{prepared.file, std::ios::binary | std::ios::in | std::ios::out};
  std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  const std::size_t at = bytes.find("end of cubin 1");
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes.find("end of cubin 1", at + 1) == std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(bytes[at] ^ 0x10));
  file.close();
  check_only_cubin_1_is_lost(prepared);
  const auto after = Store::open(prepared.file, Access::read_only)->verify();
  REQUIRE(after);
  CHECK(after->findings.empty());
}

TEST_CASE("changed resources of a cubin are a miss") {
  const Prepared prepared;
  prepared.execute("UPDATE cubin SET max_threads = 1024 WHERE source_hash = 'source1'");
  check_only_cubin_1_is_lost(prepared);
}

TEST_CASE("a resource that no integer field can hold is a miss") {
  const Prepared prepared;
  prepared.execute("UPDATE cubin SET registers = 1 << 40 WHERE source_hash = 'source1'");
  check_only_cubin_1_is_lost(prepared);
}

TEST_CASE("a cubin of another architecture under this one's name is a miss") {
  const Prepared prepared;
  prepared.execute("UPDATE cubin SET arch = 'sm_100a' WHERE source_hash = 'source1'");
  auto store = Store::open(prepared.file, Access::read_write);
  REQUIRE(store);
  CubinKey moved = sample_cubin_key(1);
  moved.arch = "sm_100a";
  const auto miss = store->cubin(moved);
  REQUIRE(miss);
  CHECK_FALSE(*miss);
}

TEST_CASE("a trial with a value that is none counts as not recorded, and verify names it") {
  const Prepared prepared;
  const char* sql = GENERATE("UPDATE trial SET outcome = 'fine' WHERE config LIKE '%=1'",
                             "UPDATE trial SET rule = 'magic' WHERE config LIKE '%=1'",
                             "UPDATE trial SET samples = 1 << 50 WHERE config LIKE '%=1'");
  prepared.execute(sql);
  auto store = Store::open(prepared.file, Access::read_write);
  REQUIRE(store);
  const auto one = store->trial(sample_trial(1).key);
  REQUIRE(one);
  CHECK_FALSE(*one);
  CHECK(store->trials(sample_trial(1).key.problem_key, kDevice)->size() == 2);
  CHECK(store->verify()->findings.size() == 1);
  TrialRecord again = sample_trial(1);
  REQUIRE(store->record(again));
  CHECK(store->trial(again.key)->has_value());
  CHECK(store->verify()->findings.empty());
}

}  // namespace
}  // namespace autotune::cache

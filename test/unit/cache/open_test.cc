#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "test/support/catch.h"
#include "test/support/older_cache.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

TEST_CASE("a writer creates folders and file for its user alone") {
  const TempFolder folder;
  const fs::path file = folder.path() / "a" / "b" / "cache.db";
  auto store = Store::open(file, Access::read_write);
  REQUIRE(store);
  CHECK(store->writable());
  CHECK(store->gives_cubins());
  CHECK(store->message().empty());
  CHECK(store->path() == file);
  CHECK(mode_of(folder / "a") == 0700);
  CHECK(mode_of(file.parent_path()) == 0700);
  CHECK(mode_of(file) == 0600);
}

TEST_CASE("a missing file is an empty store to a reader, and stays missing") {
  const TempFolder folder;
  const fs::path file = folder.path() / "none" / "cache.db";
  const auto store = Store::open(file, Access::read_only);
  REQUIRE(store);
  CHECK_FALSE(store->readable());
  CHECK_FALSE(store->writable());
  CHECK_FALSE(store->gives_cubins());
  CHECK(store->message().empty());
  CHECK(store->trials("key", kDevice)->empty());
  CHECK_FALSE(store->trial(sample_trial(1).key)->has_value());
  CHECK_FALSE(store->winner("key", kDevice)->has_value());
  CHECK(store->winners("gemm", "")->empty());
  CHECK_FALSE(store->cubin(sample_cubin_key(1))->has_value());
  CHECK(store->verify()->findings.empty());
  CHECK_FALSE(fs::exists(file.parent_path()));
}

TEST_CASE("an empty file is a new database") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  std::ofstream{file};
  const auto reader = Store::open(file, Access::read_only);
  REQUIRE(reader);
  CHECK(reader->trials("key", kDevice)->empty());
  CHECK(fs::file_size(file) == 0);
  auto writer = Store::open(file, Access::read_write);
  REQUIRE(writer);
  TrialRecord trial = sample_trial(1);
  CHECK(writer->record(trial));
}

TEST_CASE("a file of the first schema is brought up to date and keeps what it holds") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  TrialRecord trial = sample_trial(1);
  REQUIRE(Store::open(file, Access::read_write)->record(trial));
  test::make_older(file);

  {
    const auto reader = Store::open(file, Access::read_only);
    REQUIRE(reader);
    CHECK_FALSE(reader->readable());
    CHECK(reader->message().find("older version") != std::string::npos);
  }
  const auto writer = Store::open(file, Access::read_write);
  REQUIRE(writer);
  CHECK(writer->readable());
  CHECK(writer->message().empty());
  const auto found = writer->trial(trial.key);
  REQUIRE((found && *found));
  CHECK((*found)->problem == trial.problem);
  CHECK_FALSE((*found)->problem.exact_fp32);
}

TEST_CASE("a reader writes nothing") {
  const TempFolder folder;
  REQUIRE(Store::open(folder / "cache.db", Access::read_write));
  auto store = Store::open(folder / "cache.db", Access::read_only);
  REQUIRE(store);
  CHECK_FALSE(store->writable());
  TrialRecord trial = sample_trial(1);
  const auto refused = [](const auto& result) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::io_failed);
  };
  refused(store->record(trial));
  refused(store->crown({trial}));
  refused(store->begin_run({}));
  refused(store->end_run(1, {}));
  refused(store->remove(""));
  refused(store->put_cubin(sample_cubin_key(1), sample_cubin(1)));
}

TEST_CASE("a file name that is none is refused") {
  const auto store = Store::open("", Access::read_write);
  REQUIRE_FALSE(store);
  CHECK(store.error().code == ErrorCode::bad_input);
}

TEST_CASE("names that SQLite would take for something else are files") {
  const TempFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  for (const char* name : {":memory:", "file:cache.db?mode=memory", "with ' quote.db"}) {
    CAPTURE(name);
    CHECK(Store::open(name, Access::read_write));
    CHECK(fs::is_regular_file(folder / name));
  }
  fs::current_path(before);
}

TEST_CASE("what one store records another one sees, while both are open") {
  const TempFolder folder;
  auto reader_before = Store::open(folder / "cache.db", Access::read_write);
  auto writer = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE((reader_before && writer));
  TrialRecord trial = sample_trial(1);
  REQUIRE(writer->record(trial));
  CHECK(reader_before->trial(trial.key)->has_value());
}

TEST_CASE("verify counts what a sound store holds") {
  const TempFolder folder;
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  for (int i = 0; i < 3; ++i) {
    TrialRecord trial = sample_trial(i);
    REQUIRE(store->record(trial));
    REQUIRE(store->put_cubin(sample_cubin_key(i % 2), sample_cubin(i)));
  }
  REQUIRE(store->crown({sample_trial(0)}));
  const auto problems = store->verify();
  REQUIRE(problems);
  CHECK(problems->findings.empty());
  CHECK(problems->trials == 3);
  CHECK(problems->winners == 1);
  CHECK(problems->cubins == 2);
}

// Sets variables for one test; nullptr unsets.
class Variables {
 public:
  void set(const char* name, const char* value) {
    const char* old = std::getenv(name);
    before_.emplace_back(name, old == nullptr ? std::optional<std::string>{} : old);
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variables() {
    for (auto it = before_.rbegin(); it != before_.rend(); ++it) {
      it->second ? setenv(it->first, it->second->c_str(), 1) : unsetenv(it->first);
    }
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_CASE("the default path: own variable, then XDG's, then the home folder") {
  Variables variables;
  variables.set("AUTOTUNE_CACHE", "/a/mine.db");
  variables.set("XDG_CACHE_HOME", "/xdg");
  variables.set("HOME", "/home/me");
  CHECK(*default_path() == "/a/mine.db");
  variables.set("AUTOTUNE_CACHE", "");
  CHECK(*default_path() == "/xdg/autotune/cache.db");
  variables.set("XDG_CACHE_HOME", "relative");
  CHECK(*default_path() == "/home/me/.cache/autotune/cache.db");
  variables.set("XDG_CACHE_HOME", nullptr);
  CHECK(*default_path() == "/home/me/.cache/autotune/cache.db");
}

TEST_CASE("without a HOME the account's own folder serves") {
  Variables variables;
  variables.set("AUTOTUNE_CACHE", nullptr);
  variables.set("XDG_CACHE_HOME", nullptr);
  variables.set("HOME", nullptr);
  const auto path = default_path();
  REQUIRE(path);
  CHECK(path->is_absolute());
  CHECK(path->string().find("/.cache/autotune/cache.db") != std::string::npos);
}

}  // namespace
}  // namespace autotune::cache

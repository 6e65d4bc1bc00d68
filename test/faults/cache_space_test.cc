// Disks that are full: the call fails with a sentence, the database stays as it was.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

// Fills the store until it says that it cannot; returns what was wrong with that, empty if nothing.
// `relieve` makes room again.
template <class Relieve>
std::string fill_up(const fs::path& file, const Relieve& relieve) {
  auto store = Store::open(file, Access::read_write);
  if (!store) return store.error().message;
  int recorded = 0;
  for (;; ++recorded) {
    TrialRecord trial = sample_trial(recorded);
    trial.log.assign(8000, 'x');
    const auto done = store->record(trial);
    if (!done && done.error().code != ErrorCode::io_failed)
      return "wrong code: " + done.error().message;
    if (!done) break;
    if (recorded > 100'000) return "never full";
  }
  if (recorded == 0) return "full from the start";

  // Reading goes on, in this store and in a new one, and a writer that comes now is let in.
  const auto count = [](const Store& any) {
    const auto trials = any.trials(sample_trial(0).key.problem_key, kDevice);
    return trials ? static_cast<int>(trials->size()) : -1;
  };
  if (count(*store) != recorded) return "rows are gone while the disk is full";
  for (const Access access : {Access::read_only, Access::read_write}) {
    auto other = Store::open(file, access);
    if (!other) return other.error().message;
    if (count(*other) != recorded) return "another store sees other rows";
  }
  relieve();
  TrialRecord trial = sample_trial(recorded);
  if (const auto done = store->record(trial); !done) return "afterwards: " + done.error().message;
  const auto problems = store->verify();
  if (!problems) return problems.error().message;
  if (!problems->findings.empty()) return problems->findings.front();
  return count(*store) == recorded + 1 ? "" : "rows are gone";
}

TEST_CASE("a limit on the file's size is survived") {
  const TempFolder folder;
  const std::string said = in_child([&]() -> std::string {
    signal(SIGXFSZ, SIG_IGN);
    const auto limit = [](rlim_t bytes) {
      const rlimit both = {bytes, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &both);
    };
    limit(300'000);
    return fill_up(folder / "cache.db", [&] { limit(RLIM_INFINITY); });
  });
  CHECK(said == "");
}

TEST_CASE("without room for the tables the store is empty and says so") {
  const TempFolder folder;
  const std::string said = in_child([&]() -> std::string {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {0, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    auto store = Store::open(folder / "cache.db", Access::read_write);
    if (!store) return store.error().message;
    if (store->writable()) return "it claims to be writable";
    if (store->message().find("not kept") == std::string::npos)
      return "message: " + store->message();
    return store->trials("key", kDevice)->empty() ? "" : "rows out of nowhere";
  });
  CHECK(said == "");
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  CHECK(store->writable());
}

TEST_CASE("a full file system is survived") {
  const TempFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=400k,mode=0700") != 0) {
    WARN("SKIPPED: no permission to mount a small tmpfs here");
    return;
  }
  const fs::path filler = folder / "filler";
  const std::string said = in_child([&]() -> std::string {
    FILE* file = std::fopen(filler.c_str(), "w");
    const std::string block(100'000, 'f');
    const bool filled = std::fwrite(block.data(), block.size(), 1, file) == 1;
    std::fclose(file);
    if (!filled) return "no filler";
    return fill_up(folder / "cache.db", [&] { fs::remove(filler); });
  });
  CHECK(said == "");
  CHECK(umount(folder.path().c_str()) == 0);
}

}  // namespace
}  // namespace autotune::cache

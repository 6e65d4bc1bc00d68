#include "cache/trust.h"

#include <unistd.h>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

// A cache with one cubin in a folder of its own.
struct Prepared {
  TempFolder folder;
  fs::path inner = folder / "inner";
  fs::path file = inner / "cache.db";

  Prepared() {
    auto store = Store::open(file, Access::read_write);
    REQUIRE(store);
    REQUIRE(store->put_cubin(sample_cubin_key(1), sample_cubin(1)));
    TrialRecord trial = sample_trial(1);
    REQUIRE(store->record(trial));
  }
};

// Configs are given in any case; cubins only with trust.
bool gives_its_cubin(const fs::path& file) {
  auto store = Store::open(file, Access::read_write);
  REQUIRE(store);
  CHECK(store->trial(sample_trial(1).key)->has_value());
  CHECK(store->message().empty() == store->gives_cubins());
  CHECK(store->put_cubin(sample_cubin_key(2), sample_cubin(2)));
  const bool gives = store->cubin(sample_cubin_key(1))->has_value();
  CHECK(gives == store->gives_cubins());
  CHECK(store->cubin(sample_cubin_key(2))->has_value() == gives);
  return gives;
}

TEST_CASE("a cache of this user alone gives cubins") {
  const Prepared prepared;
  CHECK(reason_to_distrust(prepared.file).empty());
  CHECK(gives_its_cubin(prepared.file));
}

TEST_CASE("a file or folder that others can write gives no cubins") {
  const Prepared prepared;
  const mode_t mode = GENERATE(0020, 0002);
  chmod(prepared.file.c_str(), 0600 | mode);
  CHECK_FALSE(gives_its_cubin(prepared.file));
  chmod(prepared.file.c_str(), 0600);
  chmod(prepared.inner.c_str(), 0700 | mode);
  CHECK_FALSE(gives_its_cubin(prepared.file));
  chmod(prepared.inner.c_str(), 01777);
  CHECK_FALSE(gives_its_cubin(prepared.file));
  chmod(prepared.inner.c_str(), 0755);
  CHECK(gives_its_cubin(prepared.file));
}

TEST_CASE("own symbolic links are followed") {
  const Prepared prepared;
  fs::create_directory_symlink("inner", prepared.folder / "relative");
  fs::create_directory_symlink(prepared.inner, prepared.folder / "absolute");
  fs::create_symlink("../relative/./cache.db", prepared.inner / "link.db");
  CHECK(gives_its_cubin(prepared.folder / "relative/cache.db"));
  CHECK(gives_its_cubin(prepared.folder / "absolute/../absolute/cache.db"));
  CHECK(gives_its_cubin(prepared.folder / "absolute/link.db"));
  chmod(prepared.file.c_str(), 0666);
  CHECK_FALSE(gives_its_cubin(prepared.folder / "absolute/link.db"));
}

TEST_CASE("a link that leads in a circle is distrusted") {
  const TempFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_FALSE(reason_to_distrust(folder / "a").empty());
  CHECK_FALSE(reason_to_distrust(folder / "missing").empty());
}

TEST_CASE("what belongs to another user gives no cubins") {
  if (geteuid() != 0) {
    WARN("SKIPPED: only root can give files away");
    return;
  }
  constexpr uid_t kOther = 12345;
  const Prepared prepared;
  fs::create_symlink("cache.db", prepared.inner / "link.db");
  CHECK(gives_its_cubin(prepared.inner / "link.db"));
  REQUIRE(lchown((prepared.inner / "link.db").c_str(), kOther, kOther) == 0);
  CHECK_FALSE(gives_its_cubin(prepared.inner / "link.db"));
  CHECK(gives_its_cubin(prepared.file));
  REQUIRE(chown(prepared.inner.c_str(), kOther, kOther) == 0);
  CHECK_FALSE(gives_its_cubin(prepared.file));
  REQUIRE(chown(prepared.inner.c_str(), 0, 0) == 0);
  REQUIRE(chown(prepared.file.c_str(), kOther, kOther) == 0);
  CHECK_FALSE(gives_its_cubin(prepared.file));
}

}  // namespace
}  // namespace autotune::cache

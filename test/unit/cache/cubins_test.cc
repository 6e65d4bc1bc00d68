#include "cache/cubins.h"

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

TEST_CASE("a cubin comes back with its resources, under its own key only") {
  const TempFolder folder;
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  CubinRecord cubin;
  for (int i = 0; i < 5000; ++i) cubin.image += static_cast<char>(i * 7);
  cubin.actual = {1, 2, 3, 4, 5, 6, 7, 8, true};
  const CubinKey key = sample_cubin_key(1);
  REQUIRE(store->put_cubin(key, cubin));
  const auto found = store->cubin(key);
  REQUIRE((found && *found));
  CHECK((*found)->image == cubin.image);
  CHECK((*found)->actual == cubin.actual);
  for (const auto part : {&CubinKey::source_hash, &CubinKey::arch, &CubinKey::compiler}) {
    CubinKey other = key;
    other.*part += "0";
    const auto miss = store->cubin(other);
    REQUIRE(miss);
    CHECK_FALSE(*miss);
  }
}

TEST_CASE("a later cubin under the same key replaces the first") {
  const TempFolder folder;
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  REQUIRE(store->put_cubin(sample_cubin_key(1), sample_cubin(1)));
  REQUIRE(store->put_cubin(sample_cubin_key(1), sample_cubin(2)));
  CHECK((*store->cubin(sample_cubin_key(1)))->image == sample_cubin(2).image);
  CHECK(store->verify()->cubins == 1);
}

TEST_CASE("the seal covers key, resources and image") {
  const CubinKey key = sample_cubin_key(1);
  const CubinRecord cubin = sample_cubin(1);
  const std::string seal = seal_of(key, cubin);
  CHECK(seal == seal_of(key, cubin));
  for (const auto part : {&CubinKey::source_hash, &CubinKey::arch, &CubinKey::compiler}) {
    CubinKey other_key = key;
    other_key.*part += "0";
    CHECK(seal_of(other_key, cubin) != seal);
  }
  CubinRecord other = cubin;
  other.actual.max_threads = 1;
  CHECK(seal_of(key, other) != seal);
  other = cubin;
  other.image[100] ^= 1;
  CHECK(seal_of(key, other) != seal);
}

}  // namespace
}  // namespace autotune::cache

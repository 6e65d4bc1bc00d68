// Where machine code comes from, on a machine without a compiler.
#include <filesystem>

#include "autotune/lookup/cubin_source.h"
#include "test/unit/lookup/setting.h"

using namespace autotune;
using test::Setting;

TEST_CASE("code from the cache needs no compiler") {
  const Setting setting;
  setting.fill();
  const auto cubin =
      lookup::cubin_of(setting.file, setting.config, setting.problem, setting.device, false);
  REQUIRE(cubin.has_value());
  CHECK(cubin->cached);
  CHECK(cubin->image == "ELF of the test");
}

TEST_CASE("code that is not in the cache, or not wanted from it, needs one") {
  const Setting setting;
  const auto missing =
      lookup::cubin_of(setting.file, setting.config, setting.problem, setting.device, false);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::no_compiler);
  setting.fill();
  const auto afresh =
      lookup::cubin_of(setting.file, setting.config, setting.problem, setting.device, true);
  REQUIRE_FALSE(afresh.has_value());
  CHECK(afresh.error().code == ErrorCode::no_compiler);
}

TEST_CASE("a cache that others may write to gives no code") {
  const Setting setting;
  setting.fill();
  std::filesystem::permissions(setting.file, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const auto cubin =
      lookup::cubin_of(setting.file, setting.config, setting.problem, setting.device, false);
  REQUIRE_FALSE(cubin.has_value());
  CHECK(cubin.error().code == ErrorCode::no_compiler);
}

TEST_CASE("code of any compiler serves, the latest stored first") {
  const Setting setting;
  setting.fill();
  auto store = cache::Store::open(setting.file, cache::Access::read_write);
  REQUIRE(store.has_value());
  const std::string arch = setting.device.limits.arch;
  REQUIRE(store->put_cubin({setting.hash(), arch, "nvrtc 12.8"}, {"later", {}}).has_value());
  const auto found = lookup::stored_code(*store, setting.config, setting.problem, setting.device);
  REQUIRE(found.has_value());
  CHECK(found->cubin.image == "later");
  CHECK(found->key.compiler == "nvrtc 12.8");
}

TEST_CASE("code that spills is taken only where it was compiled plainly") {
  const Setting setting;
  auto store = cache::Store::open(setting.file, cache::Access::read_write);
  REQUIRE(store.has_value());
  const std::string arch = setting.device.limits.arch;
  ActualResources spilled;
  spilled.spill_store_bytes = 8;
  const auto found = [&] {
    return lookup::stored_code(*store, setting.config, setting.problem, setting.device);
  };
  REQUIRE(store->put_cubin({setting.hash(), arch, "nvrtc 13.0"}, {"a search's", spilled}));
  CHECK_FALSE(found().has_value());
  REQUIRE(store->put_cubin({setting.hash(), arch, "nvrtc 13.0 -O1"}, {"plain", spilled}));
  REQUIRE(store->put_cubin({setting.hash(), arch, "nvrtc 13.1"}, {"a later search's", spilled}));
  REQUIRE(found().has_value());
  CHECK(found()->cubin.image == "plain");
}

TEST_CASE("code for another architecture is not found") {
  const Setting setting;
  setting.fill();
  const auto cubin = lookup::cubin_of(setting.file, setting.config, setting.problem,
                                      *io::find_device("nvidia-b200"), false);
  REQUIRE_FALSE(cubin.has_value());
  CHECK(cubin.error().code == ErrorCode::no_compiler);
}

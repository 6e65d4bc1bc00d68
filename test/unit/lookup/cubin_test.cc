// Where machine code comes from, on a machine without a compiler.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "autotune/autotune.h"
#include "autotune/io/builtin.h"
#include "autotune/lookup/cubin_source.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "search/plan.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

struct Setting {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("autotune_cubin_" + std::to_string(getpid()));
  std::filesystem::path file = folder / "cache.db";
  const DeviceSpec& device = *io::find_device("nvidia-h200");
  Problem problem;
  Config config;

  Setting() {
    // The library is looked for once, so this holds for the whole program.
    setenv("AUTOTUNE_NVRTC", "/no/such/folder", 1);
    std::filesystem::remove_all(folder);
    problem.m = problem.n = problem.k = 4096;
    problem = *checked(problem);
    config = search::default_candidate(problem, device, *io::default_space("gemm"), {})->config;
  }
  ~Setting() { std::filesystem::remove_all(folder); }

  std::string hash() const { return source_hash(config, traits_of(problem), device); }

  // A winner and its code, as a tuning run leaves them.
  void fill() const {
    auto store = cache::Store::open(file, cache::Access::read_write);
    REQUIRE(store.has_value());
    const auto run = store->begin_run(
        {fingerprint(device), device.name, "nvrtc 13.0", "13.0", "0.1.0", "{}", "host"});
    REQUIRE(run.has_value());
    cache::WinnerRecord winner;
    winner.trial.run = *run;
    winner.trial.problem = problem;
    winner.trial.key = {problem_key(problem), fingerprint(device), to_string(config), hash(),
                        "nvrtc 13.0"};
    winner.trial.measurement.median_us = 210;
    winner.trial.measurement.samples = 9;
    REQUIRE(store->crown(winner).has_value());
    REQUIRE(store->put_cubin({hash(), device.limits.arch, "nvrtc 13.0"}, {"ELF of the test", {}})
                .has_value());
  }
};

}  // namespace

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

TEST_CASE("code for another architecture is not found") {
  const Setting setting;
  setting.fill();
  const auto cubin = lookup::cubin_of(setting.file, setting.config, setting.problem,
                                      *io::find_device("nvidia-b200"), false);
  REQUIRE_FALSE(cubin.has_value());
  CHECK(cubin.error().code == ErrorCode::no_compiler);
}

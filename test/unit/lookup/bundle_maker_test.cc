// What a bundle is made of, and that a session answers from it as it was made to.
#include "autotune/lookup/bundle_maker.h"

#include <string>
#include <vector>

#include "test/unit/lookup/setting.h"

using namespace autotune;
using test::Setting;

namespace {

cache::BundleInfo info_for(const DeviceSpec& device) {
  return {device.name, fingerprint(device), device.limits.arch, "test", "0.1.0", 1};
}

void never(const BestConfig&) { FAIL("nothing had to be compiled"); }

}  // namespace

TEST_CASE("a tuned problem and its code go from the cache into the bundle") {
  const Setting setting;
  setting.fill();
  const auto store = cache::Store::open(setting.file, cache::Access::read_only);
  REQUIRE(store.has_value());
  const Problem same_code = Setting::square(4160);
  setting.crown(same_code, setting.config, 210);
  REQUIRE(source_hash(setting.config, same_code, setting.device) == setting.hash());
  const std::vector<Problem> problems = {setting.problem, same_code};
  const auto made =
      lookup::make_bundle(info_for(setting.device), problems, setting.device, &*store, never);
  REQUIRE(made.has_value());
  REQUIRE(made->rows.size() == 2);
  for (const lookup::BundleRow& row : made->rows) {
    CHECK(row.best.match == Match::exact);
    CHECK(row.best.median_us == Approx(210));
    CHECK(row.compiler == "nvrtc 13.0");
    CHECK_FALSE(row.compiled);
  }
  const auto winner =
      made->bundle.store().winner(problem_key(setting.problem), fingerprint(setting.device));
  REQUIRE(winner.has_value());
  REQUIRE(winner->has_value());
  CHECK((*winner)->trial.measurement.samples == 9);
}

TEST_CASE("an MLP's winner goes along with the code of both kernels") {
  const Setting setting(Setting::mlp());
  setting.fill();
  const auto store = cache::Store::open(setting.file, cache::Access::read_only);
  REQUIRE(store.has_value());
  const auto made = lookup::make_bundle(info_for(setting.device), {setting.problem}, setting.device,
                                        &*store, never);
  REQUIRE(made.has_value());
  const lookup::BundleRow& row = made->rows.at(0);
  CHECK(row.best.match == Match::exact);
  CHECK(row.best.config == to_string(setting.config));
  CHECK_FALSE(row.compiled);
  CHECK(row.compiler == "nvrtc 13.0");
  REQUIRE(setting.hash(0) != setting.hash(1));
  for (const std::size_t stage : {0, 1}) {
    const auto code = made->bundle.store().cubin(setting.code_key(stage));
    REQUIRE(code.has_value());
    CHECK(code->has_value());
  }
}

TEST_CASE("a bundle of an MLP compiles the kernel whose code is not stored") {
  const Setting setting(Setting::mlp());
  auto store = cache::Store::open(setting.file, cache::Access::read_write);
  REQUIRE(store.has_value());
  REQUIRE(store->put_cubin(setting.code_key(0), {"ELF of the test", {}}).has_value());
  setting.crown(setting.problem, setting.config, 210);
  int told = 0;
  const auto made = lookup::make_bundle(info_for(setting.device), {setting.problem}, setting.device,
                                        &*store, [&told](const BestConfig&) { ++told; });
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ErrorCode::no_compiler);
  CHECK(told == 1);
}

TEST_CASE("a winner of older code goes along as the guess that it is; its code is today's") {
  const Setting setting(Setting::unheard_of());
  cache::WinnerRecord old = setting.winner(setting.problem, setting.config, 210);
  old.trial.key.source_hash = std::string(64, '0');
  auto store = cache::Store::open(setting.file, cache::Access::read_write);
  REQUIRE(store.has_value());
  REQUIRE(store->crown(old).has_value());
  setting.put_code(*store);
  const auto made = lookup::make_bundle(info_for(setting.device), {setting.problem}, setting.device,
                                        &*store, never);
  REQUIRE(made.has_value());
  CHECK(made->rows[0].best.match == Match::nearest_problem);
  CHECK(made->rows[0].best.config == to_string(setting.config));

  const std::filesystem::path file = setting.folder / "old.bundle";
  REQUIRE(made->bundle.write(file).has_value());
  SessionOptions options = setting.options();
  options.bundle = file;
  options.use_cache = false;
  options.allow_compile = false;
  const auto session = Session::open(options);
  REQUIRE(session.has_value());
  CHECK(session->best_config(setting.problem)->config == made->rows[0].best.config);
  CHECK(session->kernel(setting.problem).error().code == ErrorCode::no_gpu);
}

TEST_CASE("what is not compiled needs the compiler, and what cannot run is named") {
  const Setting setting;
  int told = 0;
  const auto tell = [&told](const BestConfig&) { ++told; };
  const auto made = lookup::make_bundle(info_for(setting.device), {setting.problem}, setting.device,
                                        nullptr, tell);
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().code == ErrorCode::no_compiler);
  CHECK(told == 1);

  const DeviceSpec& turing = *io::find_device("tesla-t4");  // no bf16 there
  const auto none = lookup::make_bundle(info_for(turing), {setting.problem}, turing, nullptr, tell);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == ErrorCode::nothing_fits);
  CHECK(none.error().message.find("4096x4096x4096") != std::string::npos);
}

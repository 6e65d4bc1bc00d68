// What tests of the library share: a folder with a cache, winners and their code, no compiler.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "autotune/io/builtin.h"
#include "autotune/session.h"
#include "cache/bundle.h"
#include "cache/store.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::test {

struct Setting {
  cache::testing::TempFolder folder;
  std::filesystem::path file = folder / "cache.db";
  const DeviceSpec& device = *io::find_device("nvidia-h200");
  Problem problem;
  Config config = default_config(problem, device);

  // The compiler's library is looked for once, so this holds for the whole program.
  explicit Setting(const Problem& tuned = square(4096)) : problem(tuned) {
    setenv("AUTOTUNE_NVRTC", "/no/such/folder", 1);
  }

  static Problem square(std::int64_t size) {
    Problem problem;
    problem.m = problem.n = problem.k = size;
    return *checked(problem);
  }
  // One whose like did not come with the program.
  static Problem unheard_of(std::int64_t m_and_n = 4096, std::int64_t k = 4096) {
    Problem problem;
    problem.m = problem.n = m_and_n;
    problem.k = k;
    problem.out_dtype = DType::fp32;
    problem.layout = Layout::nn;
    return *checked(problem);
  }
  static Problem mlp() {
    Problem problem = unheard_of();
    problem.family = "geglu_mlp";
    problem.n = 2048;
    return *checked(problem);
  }
  static Config default_config(const Problem& problem, const DeviceSpec& device) {
    const auto of_stage = [&](std::size_t stage) {
      const Problem own = stage_of(problem, stage);
      return search::default_candidate(own, device, *io::default_space(own.family), {})->config;
    };
    return stage_count(problem) == 1 ? of_stage(0) : join(of_stage(0), of_stage(1));
  }

  // Of the code of one of its kernels.
  std::string hash(std::size_t stage = 0) const {
    return source_hash(stage_of(config, stage), traits_of(stage_of(problem, stage)), device);
  }

  cache::WinnerRecord winner(const Problem& of, const Config& won, double us) const {
    cache::WinnerRecord winner;
    winner.trial.problem = of;
    winner.trial.key = {problem_key(of), fingerprint(device), to_string(won),
                        source_hash(won, of, device), "nvrtc 13.0"};
    winner.trial.measurement.median_us = us;
    winner.trial.measurement.samples = 9;
    return winner;
  }

  void crown(const Problem& of, const Config& won, double us) const {
    auto store = cache::Store::open(file, cache::Access::read_write);
    REQUIRE(store.has_value());
    cache::WinnerRecord found = winner(of, won, us);
    REQUIRE(store->record(found.trial).has_value());
    REQUIRE(store->crown(found).has_value());
  }

  void put_code(cache::Store& store) const {
    for (std::size_t i = 0; i < stage_count(problem); ++i) {
      REQUIRE(store.put_cubin(code_key(i), {"ELF of the test", {}}).has_value());
    }
  }
  cache::CubinKey code_key(std::size_t stage) const {
    return {hash(stage), device.limits.arch, "nvrtc 13.0"};
  }

  // A winner and its code, as a tuning run leaves them.
  void fill() const {
    crown(problem, config, 210);
    auto store = cache::Store::open(file, cache::Access::read_write);
    REQUIRE(store.has_value());
    put_code(*store);
  }

  // The same as a bundle.
  std::filesystem::path make_bundle() const {
    auto bundle = cache::Bundle::create(
        {device.name, fingerprint(device), device.limits.arch, "test", "0.1.0", 1});
    REQUIRE(bundle.has_value());
    REQUIRE(bundle->store().crown(winner(problem, config, 205)).has_value());
    put_code(bundle->store());
    const std::filesystem::path path = folder / "test.bundle";
    REQUIRE(bundle->write(path).has_value());
    return path;
  }

  SessionOptions options() const {
    SessionOptions options;
    options.cache = file;
    options.device = device.slug;
    return options;
  }
};

}  // namespace autotune::test

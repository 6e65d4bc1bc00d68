// A cache with winners of a test's choice, and what it answers.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "autotune/lookup/answer.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "test/support/catch.h"

namespace autotune::test {

inline Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return *checked(problem);
}

inline const DeviceSpec& device(const char* name) {
  const DeviceSpec* found = io::find_device(name);
  REQUIRE(found != nullptr);
  return *found;
}

// A cache of its own for each test.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("autotune_lookup_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path file() const { return path_ / "cache.db"; }

 private:
  std::filesystem::path path_;
};

inline search::Plan plan_of(const Problem& problem, const DeviceSpec& gpu) {
  auto plan = search::make_plan(problem, gpu, *io::default_space(problem.family), {});
  REQUIRE(plan.has_value());
  return *std::move(plan);
}

// Crowns `config` as measured in `us` on today's code, or on other code.
inline void crown(const std::filesystem::path& file, const Problem& problem, const DeviceSpec& gpu,
                  const Config& config, double us, bool todays_code = true) {
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store.has_value());
  const auto run =
      store->begin_run({fingerprint(gpu), gpu.name, "nvrtc 13.0", "13.0", "0.1.0", "{}", "host"});
  REQUIRE(run.has_value());
  cache::WinnerRecord winner;
  winner.trial.run = *run;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(gpu), to_string(config),
                      todays_code ? source_hash(config, problem, gpu) : std::string(64, '0'),
                      "nvrtc 13.0"};
  winner.trial.measurement.median_us = us;
  winner.trial.measurement.samples = 9;
  REQUIRE(store->record(winner.trial).has_value());
  REQUIRE(store->crown(winner).has_value());
}

inline BestConfig answer_with(const std::filesystem::path& file, const Problem& problem,
                              const DeviceSpec& gpu, bool tuned_only = false) {
  auto store = cache::Store::open(file, cache::Access::read_only);
  REQUIRE(store.has_value());
  lookup::Sources sources;
  sources.store = &*store;
  lookup::Bounds bounds;
  bounds.tuned_only = tuned_only;
  auto best = lookup::answer(problem, gpu, sources, bounds);
  REQUIRE(best.has_value());
  return *std::move(best);
}

// The same with winners that came with the program.
inline BestConfig answer_among(std::span<const io::BuiltinTuned> tuned, const Problem& problem,
                               const DeviceSpec& gpu) {
  lookup::Sources sources;
  sources.tuned = tuned;
  auto best = lookup::answer(problem, gpu, sources);
  REQUIRE(best.has_value());
  return *std::move(best);
}

// What the model says of a config that fits.
inline double model_us(const Config& config, const Problem& problem, const DeviceSpec& gpu) {
  Resources resources;
  REQUIRE_FALSE(
      search::check(config, problem, traits_of(problem), gpu, {}, &resources).has_value());
  return search::predict_us(config, problem, gpu, resources, 0);
}

}  // namespace autotune::test

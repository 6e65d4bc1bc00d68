// What the tests of the tuning loop share: a small space of real configs, a temporary cache, the
// fake worker and its rules.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "autotune/io/builtin.h"
#include "autotune/tune/tuner.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/support/fake_time.h"
#include "test/support/temp_folder.h"

namespace autotune::test {

inline const DeviceSpec& h200() {
  const DeviceSpec* device = io::find_device("nvidia-h200");
  REQUIRE(device);
  return *device;
}

// fp32 on simt: the first `values` of each parameter's built-in ones.
inline search::Space small_space(std::size_t values = 2) {
  const search::Space* whole = io::default_space("gemm");
  REQUIRE(whole);
  search::Space space = *whole;
  std::erase_if(space.kernels, [](const auto& kernel) { return kernel.kernel != "simt"; });
  REQUIRE(space.kernels.size() == 1);
  for (search::ParameterRange& range : space.kernels[0].parameters) {
    while (range.values.size() > values) range.values.pop_back();
  }
  return space;
}

inline Problem small_problem(std::int64_t m = 1000) {
  Problem problem;
  problem.m = m;
  problem.n = 1000;
  problem.k = 1000;
  problem.dtype = problem.out_dtype = DType::fp32;
  const auto filled = checked(problem);
  REQUIRE(filled);
  return *filled;
}

// An MLP whose stages simt serves alone.
inline Problem small_mlp(std::int64_t tokens = 1000) {
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = tokens;
  problem.n = 2000;
  problem.k = 1000;
  problem.dtype = problem.out_dtype = DType::fp32;
  problem.exact_fp32 = true;
  const auto filled = checked(problem);
  REQUIRE(filled);
  return *filled;
}

// Sets an environment variable while it lives.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

// What the fake workers did, line by line.
class FakeLog {
 public:
  FakeLog() : setting_("AUTOTUNE_FAKE_LOG", file().string()) {}
  std::vector<std::string> lines(const std::string& first_word) const {
    std::vector<std::string> found;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) {
      if (line.rfind(first_word + " ", 0) == 0) found.push_back(line.substr(first_word.size() + 1));
    }
    return found;
  }
  void clear() { std::filesystem::remove(file()); }

 private:
  std::filesystem::path file() const { return folder_.path() / "log"; }
  TempFolder folder_;
  Setting setting_;
};

struct Watcher : tune::Observer {
  void planned(const search::Plan& plan) override { plans.push_back(plan); }
  void tried(const Trial& trial, const tune::Progress& seen) override {
    trials.push_back(trial);
    progress.push_back(seen);
    if (stop && static_cast<int>(trials.size()) >= stop_after) *stop = true;
  }
  void warning(const std::string& message) override { warnings.push_back(message); }

  std::vector<search::Plan> plans;
  std::vector<Trial> trials;
  std::vector<tune::Progress> progress;
  std::vector<std::string> warnings;
  std::atomic<bool>* stop = nullptr;
  int stop_after = 0;
};

inline tune::TuneOptions fake_options(const std::string& strategy = "exhaustive") {
  tune::TuneOptions options;
  options.strategy = strategy;
  options.jobs = 2;
  options.space = small_space();
  options.worker = AUTOTUNE_FAKE_WORKER;
  return options;
}

inline cache::Store open_store(const TempFolder& folder) {
  auto store = cache::Store::open(folder.path() / "cache.db", cache::Access::read_write);
  INFO((store ? std::string() : store.error().message));
  REQUIRE(store);
  return std::move(*store);
}

// The fastest survivor by the fake worker's times.
inline std::string fastest(const search::Plan& plan) {
  const auto best = std::min_element(plan.survivors.begin(), plan.survivors.end(),
                                     [](const search::Candidate& a, const search::Candidate& b) {
                                       return fake_time_us(to_string(a.config)) <
                                              fake_time_us(to_string(b.config));
                                     });
  return to_string(best->config);
}

inline Expected<tune::TuneResult> tune_once(const tune::TuneOptions& options,
                                            const Problem& problem, cache::Store* store,
                                            Watcher& watcher, const std::atomic<bool>& stop) {
  auto tuner = tune::Tuner::create(h200(), 0, options);
  REQUIRE(tuner);
  return tuner->tune(problem, store, watcher, stop);
}

inline tune::TuneResult tuned(const tune::TuneOptions& options, const Problem& problem,
                              cache::Store* store, Watcher& watcher) {
  const std::atomic<bool> never{false};
  auto result = tune_once(options, problem, store, watcher, never);
  INFO((result ? std::string() : result.error().message));
  REQUIRE(result);
  return std::move(*result);
}

}  // namespace autotune::test

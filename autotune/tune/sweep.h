// Measures configs that were drawn beforehand, whatever their results: wide data for judging search
// strategies and fitting the performance model.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "autotune/io/sweep.h"
#include "cache/store.h"
#include "search/plan.h"

namespace autotune::tune {

struct SweepOptions {
  std::size_t trials = 2000;  // configs per problem
  int pairs = 5;              // with the reference; slow configs get fewer
  std::uint64_t seed = 1;     // of the draw and the inputs
  int jobs = 0;               // compile workers; 0: one per core
  search::Limits limits;
  search::Space space;
  std::filesystem::path worker;  // executable; empty: found
};

struct SweepProgress {
  std::size_t done = 0;  // rows, earlier runs' included
  std::size_t total = 0;
  std::size_t failed = 0;
  double best = 0;  // ratio; 0: none yet
};

// Called for each row when it is known, and before the first row of a run with nothing new but the
// header and the run filled in (`row` null). An error ends the sweep.
using SweepSink = std::function<Expected<void>(const io::Sweep& sweep, const io::SweepRow* row,
                                               const SweepProgress& progress)>;

// Keeps its workers and compiled code from problem to problem.
class Sweeper {
 public:
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  static Expected<Sweeper> create(const DeviceSpec& device, int device_index,
                                  const SweepOptions& options);
  Sweeper(Sweeper&&) noexcept;
  Sweeper& operator=(Sweeper&&) noexcept;
  ~Sweeper();

  // Goes on with `before`, the rows of an earlier run of the same problem on the same GPU, where
  // that is given. Returns true when every config that was drawn has its row, false at the deadline
  // or with `stop`. Errors: nothing_fits, no_gpu, no_compiler, failed (no config can serve as the
  // reference), and the sink's.
  Expected<bool> sweep(const Problem& problem, const std::optional<io::Sweep>& before,
                       cache::Store* store, const Deadline& deadline, const std::atomic<bool>& stop,
                       const SweepSink& sink);

 private:
  struct Impl;
  explicit Sweeper(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::tune

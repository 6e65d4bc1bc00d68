// Times launches with CUDA events: cold (one launch after an L2 flush) or hot (a graph of many).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autotune/gpu/workbench.h"

namespace autotune::gpu {

// Puts work on a stream, with the operands at one of their places (Operands::spread).
using Launch = std::function<Expected<void>(void* stream, std::size_t place)>;

// What is timed. Copies share the graph.
struct Subject {
  Launch launch;
  Launch before;                // ahead of each cold run, outside the timing; may be empty
  std::shared_ptr<void> graph;  // hot: the captured launches
  int runs = 1;                 // launches per sample
};

// A subject's turn to be launched.
struct Turn {
  const Subject* subject;
  std::size_t place = 0;  // a graph has its own
};

// Move-only; belongs to the workbench, which must outlive it.
class Timer {
 public:
  static Expected<Timer> create(Workbench& bench);
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;
  ~Timer();

  // Captures worker::launches_per_sample() launches at place 0 in a CUDA graph: a hot subject.
  // `before` is dropped: back to back means that nothing comes in between.
  Expected<Subject> make_hot(const Subject& cold);

  // A cold subject's launch or a hot one's graph, without a flush and not timed.
  Expected<void> launch(const Turn& turn);

  // One sample in microseconds per launch of each turn, in this order; at most kMostAtOnce. The
  // stream is held back until all of it is queued. A cold run is: before, flush, event, launch,
  // event; a hot one: event, graph, event.
  static constexpr std::size_t kMostAtOnce = 16;
  Expected<std::vector<double>> sample(std::span<const Turn> order);

 private:
  struct Impl;
  explicit Timer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune::gpu

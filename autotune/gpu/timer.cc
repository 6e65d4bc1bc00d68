#include "autotune/gpu/timer.h"

#include <algorithm>
#include <array>

#include "autotune/gpu/handles.h"
#include "autotune/worker/messages.h"

namespace autotune::gpu {

struct Timer::Impl {
  Workbench& bench;
  const DriverApi& api;
  struct Bracket {
    Event start;
    Event stop;
  };
  std::array<Bracket, kMostAtOnce> brackets;

  CUstream stream() const { return static_cast<CUstream>(bench.stream()); }

  Expected<void> run(const Subject& subject, std::size_t place) {
    if (subject.graph == nullptr) return subject.launch(bench.stream(), place);
    const CUgraphExec graph = static_cast<GraphExec*>(subject.graph.get())->get();
    return bench.check(api.cuGraphLaunch(graph, stream()), "cannot launch a graph");
  }

  Expected<void> record(const Event& event) {
    return bench.check(api.cuEventRecord(event.get(), stream()), "cannot record an event");
  }

  Expected<void> queue(const Turn& turn, const Bracket& bracket) {
    const Subject& subject = *turn.subject;
    const bool cold = subject.graph == nullptr;
    Expected<void> state;
    if (cold && subject.before) state = subject.before(bench.stream(), turn.place);
    if (state && cold) state = bench.flush();
    if (state) state = record(bracket.start);
    if (state) state = run(subject, turn.place);
    if (state) state = record(bracket.stop);
    return state;
  }

  Expected<Graph> capture(const Subject& subject, int runs) {
    auto state =
        bench.check(api.cuStreamBeginCapture(stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                    "cannot capture launches");
    if (!state) return tl::unexpected(state.error());
    for (int i = 0; i < runs && state; ++i) state = subject.launch(bench.stream(), 0);
    CUgraph raw = nullptr;
    auto ended = bench.check(api.cuStreamEndCapture(stream(), &raw), "cannot capture launches");
    Graph graph(raw);
    if (!state) return tl::unexpected(state.error());
    if (!ended) return tl::unexpected(ended.error());
    return graph;
  }
};

Timer::Timer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Timer::Timer(Timer&&) noexcept = default;
Timer& Timer::operator=(Timer&&) noexcept = default;
Timer::~Timer() = default;

Expected<Timer> Timer::create(Workbench& bench) {
  auto api = driver();
  if (!api) return tl::unexpected(api.error());
  auto impl = std::unique_ptr<Impl>(new Impl{bench, **api, {}});
  for (Impl::Bracket& bracket : impl->brackets) {
    for (Event* event : {&bracket.start, &bracket.stop}) {
      auto made = create_event();
      if (!made) return tl::unexpected(made.error());
      *event = std::move(*made);
    }
  }
  return Timer(std::move(impl));
}

Expected<Subject> Timer::make_hot(const Subject& cold) {
  const std::array<Turn, 3> probe{{{&cold}, {&cold}, {&cold}}};
  auto times = sample(probe);
  if (!times) return tl::unexpected(times.error());
  const double each = std::max(*std::min_element(times->begin(), times->end()), 0.1);
  Subject hot{cold.launch, {}, nullptr, 1};
  hot.runs = worker::launches_per_sample(TimingMode::hot, each);
  auto graph = impl_->capture(cold, hot.runs);
  if (!graph) return tl::unexpected(graph.error());
  CUgraphExec raw = nullptr;
  auto made = impl_->bench.check(impl_->api.cuGraphInstantiate(&raw, graph->get(), 0),
                                 "cannot make a graph of launches");
  if (!made) return tl::unexpected(made.error());
  hot.graph = std::make_shared<GraphExec>(raw);
  // The first launch of a graph also uploads it.
  auto first = impl_->run(hot, 0);
  if (first) first = impl_->bench.synchronize();
  if (!first) return tl::unexpected(first.error());
  return hot;
}

Expected<void> Timer::launch(const Turn& turn) {
  const Subject& subject = *turn.subject;
  Expected<void> state;
  if (subject.graph == nullptr && subject.before) {
    state = subject.before(impl_->bench.stream(), turn.place);
  }
  return state ? impl_->run(subject, turn.place) : state;
}

Expected<std::vector<double>> Timer::sample(std::span<const Turn> order) {
  const std::size_t count = std::min(order.size(), kMostAtOnce);
  auto state = impl_->bench.hold();
  for (std::size_t i = 0; i < count && state; ++i) {
    state = impl_->queue(order[i], impl_->brackets[i]);
  }
  // Also after a failure: what is queued must not wait for its time limit.
  impl_->bench.release();
  auto finished = impl_->bench.synchronize();
  if (state) state = finished;
  std::vector<double> times(count);
  for (std::size_t i = 0; i < count && state; ++i) {
    const Impl::Bracket& bracket = impl_->brackets[i];
    float ms = 0;
    state = impl_->bench.check(
        impl_->api.cuEventElapsedTime(&ms, bracket.start.get(), bracket.stop.get()),
        "cannot read the time between two events");
    times[i] = ms * 1000.0 / order[i].subject->runs;
  }
  if (!state) return tl::unexpected(state.error());
  return times;
}

}  // namespace autotune::gpu

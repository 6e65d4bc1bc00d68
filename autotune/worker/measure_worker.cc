#include <span>
#include <utility>

#include "autotune/worker/pool.h"
#include "autotune/worker/slot.h"

namespace autotune::worker {
namespace {

constexpr int kStartFailures = 3;

// After these the context is suspect, and goes with its process.
bool poisons(Outcome outcome) {
  return outcome == Outcome::faulted || outcome == Outcome::timed_out;
}

}  // namespace

struct MeasureWorker::Impl {
  explicit Impl(SlotOptions options) : slot(std::move(options)) {}

  Slot slot;
  std::string request;
  std::uint64_t id = 0;                    // of the measurement that was submitted last
  bool unsent = false;                     // the request waits for a worker that is ready
  bool at_work = false;                    // a worker has it
  std::optional<std::string> answer;       // bytes of a reply
  std::optional<Slot::Lost> lost_at_work;  // in place of a reply
  std::optional<Error> refused;
  int start_failures = 0;

  void submit(std::string message) {
    request = std::move(message);
    unsent = true;
    answer.reset();
    lost_at_work.reset();
  }

  void start_failed(const std::string& why) {
    if (++start_failures < kStartFailures) return;
    refused = Error{ErrorCode::failed, "measuring workers do not get ready: " + why};
  }

  void on_lost(Slot::Lost lost) {
    if (lost.was == Slot::State::starting || lost.unseen) {
      unsent = unsent || lost.unseen;
      at_work = false;
      start_failed(lost.why);
    } else if (at_work) {
      at_work = false;
      lost_at_work = std::move(lost);
    }
  }

  void look() {
    while (true) {
      Slot::Event event = slot.step();
      if (event.greeted) {
        if (!event.greeted->hello.ok) {
          refused = Error{event.greeted->hello.code, event.greeted->hello.message};
        }
      } else if (event.replied) {
        at_work = false;
        start_failures = 0;
        answer = std::move(event.replied->bytes);
      } else {
        if (event.lost) on_lost(std::move(*event.lost));
        return;
      }
    }
  }

  void turn(Clock::time_point limit) {
    // An idle worker may have died meanwhile; what is not sent yet goes to its successor.
    look();
    if (slot.state() == Slot::State::empty && !lost_at_work && !refused) {
      if (auto started = slot.start(); !started) refused = started.error();
    }
    if (slot.state() == Slot::State::idle && unsent) {
      slot.send(request);
      unsent = false;
      at_work = true;
    }
    const bool rests = slot.state() == Slot::State::idle && !at_work;
    if (refused || answer || lost_at_work || rests) return;
    Slot::wait(std::span(&slot, 1), limit);
    look();
  }

  // Until there is an answer, a loss or an error, or `limit`.
  void run(Clock::time_point limit) {
    for (bool last = false; (unsent || at_work) && !last && !refused;) {
      last = Clock::now() >= limit;
      turn(limit);
    }
  }

  void renew() {
    slot.end();
    if (auto started = slot.start(); !started) refused = started.error();
  }

  // The reply that came, or one that stands for the lost worker.
  template <class Reply>
  Reply take(std::uint64_t id, std::optional<Reply> (*decode)(const std::string&)) {
    Reply reply;
    reply.id = id;
    if (lost_at_work) {
      reply.outcome = lost_at_work->timed_out ? Outcome::timed_out : Outcome::faulted;
      reply.log = std::move(lost_at_work->why);
    } else if (auto read = decode(*answer); read && read->id == id) {
      reply = std::move(*read);
    } else {
      reply.outcome = Outcome::faulted;
      reply.log = "the worker sent a reply that cannot be read";
    }
    answer.reset();
    lost_at_work.reset();
    if (poisons(reply.outcome)) renew();
    return reply;
  }
};

MeasureWorker::MeasureWorker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeasureWorker::MeasureWorker(MeasureWorker&&) noexcept = default;
MeasureWorker& MeasureWorker::operator=(MeasureWorker&&) noexcept = default;
MeasureWorker::~MeasureWorker() = default;

Expected<MeasureWorker> MeasureWorker::start(const WorkerOptions& options, int device_index) {
  // No memory limit: a CUDA context reserves far more address space than it uses.
  auto impl = std::make_unique<Impl>(
      SlotOptions{options.executable,
                  {"worker", "measure", "--device", std::to_string(device_index)},
                  0,
                  options.time_limit});
  if (auto started = impl->slot.start(); !started) return tl::unexpected(started.error());
  return MeasureWorker(std::move(impl));
}

Expected<std::string> MeasureWorker::driver() {
  // A worker that was lost since, whose loss nobody has been told yet, has no successor.
  while (impl_->slot.what().empty() && !impl_->refused) {
    impl_->turn(Clock::now() + std::chrono::seconds(1));
  }
  if (impl_->refused) return tl::unexpected(*impl_->refused);
  return impl_->slot.what();
}

void MeasureWorker::submit(const MeasureRequest& request) {
  impl_->id = request.id;
  impl_->submit(encode(request));
}

Expected<std::optional<MeasureReply>> MeasureWorker::poll(std::chrono::milliseconds timeout) {
  impl_->run(Clock::now() + timeout);
  if (impl_->refused) return tl::unexpected(*impl_->refused);
  if (!impl_->answer && !impl_->lost_at_work) return std::optional<MeasureReply>();
  return impl_->take<MeasureReply>(impl_->id, decode_measure_reply);
}

Expected<CompareReply> MeasureWorker::compare(const CompareRequest& request) {
  impl_->submit(encode(request));
  while (!impl_->refused && !impl_->answer && !impl_->lost_at_work) {
    impl_->run(Clock::now() + std::chrono::seconds(1));
  }
  if (impl_->refused) return tl::unexpected(*impl_->refused);
  return impl_->take<CompareReply>(request.id, decode_compare_reply);
}

void MeasureWorker::cancel() {
  impl_->unsent = false;
  impl_->answer.reset();
  impl_->lost_at_work.reset();
  if (!std::exchange(impl_->at_work, false)) return;
  impl_->renew();
}

}  // namespace autotune::worker

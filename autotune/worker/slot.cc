#include "autotune/worker/slot.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "autotune/worker/limits.h"

namespace autotune::worker {
namespace {

// Loading a driver and making a context on a busy host takes seconds.
constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::milliseconds kMemoryTick{20};

std::string trimmed(std::string text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.pop_back();
  return text;
}

}  // namespace

Expected<void> Slot::start() {
  auto process = Process::spawn(options_.executable, options_.arguments);
  if (!process) return tl::unexpected(process.error());
  process_ = std::move(*process);
  inbox_ = {};
  outbox_ = {};
  watch_memory_ = options_.memory_limit_bytes > 0 &&
                  !limit_memory(process_->pid(), options_.memory_limit_bytes);
  state_ = State::starting;
  deadline_ = Clock::now() + kStartLimit;
  return {};
}

void Slot::send(const std::string& message) {
  outbox_.put(message);
  outbox_.flush(process_->channel());
  state_ = State::busy;
  deadline_ = Clock::now() + options_.time_limit;
}

bool Slot::over_memory() const {
  return watch_memory_ && resident_bytes(process_->pid()) > options_.memory_limit_bytes;
}

Slot::Event Slot::lose(const std::string& reason, bool timed_out, bool unread) {
  Lost lost;
  lost.was = state_;
  lost.timed_out = timed_out;
  lost.unseen = state_ == State::busy && (unread || outbox_.untouched());
  const std::string words = trimmed(process_->output());
  const Exit exit = process_->end();
  lost.why = reason.empty() ? "the worker was " + describe(exit) : reason;
  if (reason.empty() && exit.signal == 0) lost.why = "the worker " + describe(exit);
  if (options_.memory_limit_bytes > 0) {
    lost.why += fmt::format(" (limit {} MiB)", options_.memory_limit_bytes >> 20);
  }
  if (!words.empty()) lost.why += ": " + words;
  process_.reset();
  state_ = State::empty;
  Event event;
  event.lost = std::move(lost);
  return event;
}

Slot::Event Slot::step() {
  if (state_ == State::empty) return {};
  const bool sent = outbox_.flush(process_->channel());
  const Inbox::State line = inbox_.fill(process_->channel());
  Event event;
  if (auto message = inbox_.take()) {
    if (state_ == State::busy) {
      state_ = State::idle;
      event.replied = Replied{std::move(*message)};
      return event;
    }
    const auto hello = state_ == State::starting ? decode_hello(*message) : std::nullopt;
    if (!hello) return lose("the worker said something that is not a greeting");
    state_ = State::idle;
    if (hello->ok) what_ = hello->what;
    event.greeted = Greeted{*hello};
    return event;
  }
  if (line == Inbox::State::broken) return lose("the worker sent garbage");
  if (line != Inbox::State::open || !sent) {
    return lose({}, false, line == Inbox::State::unread);
  }
  if (over_memory()) return lose("the worker used more memory than it may");
  if (state_ != State::idle && Clock::now() >= deadline_) {
    const auto limit = state_ == State::busy ? options_.time_limit : kStartLimit;
    return lose(fmt::format("the worker did not answer within {:.1f} s and was ended",
                            std::chrono::duration<double>(limit).count()),
                true);
  }
  return {};
}

void Slot::end() {
  process_.reset();
  state_ = State::empty;
}

void Slot::wait(std::span<const Slot> slots, Clock::time_point limit) {
  std::vector<pollfd> watched;
  for (const Slot& slot : slots) {
    if (slot.state_ == State::empty) continue;
    const short out = slot.outbox_.empty() ? 0 : POLLOUT;
    watched.push_back({slot.process_->channel(), static_cast<short>(POLLIN | out), 0});
    if (slot.state_ != State::idle) limit = std::min(limit, slot.deadline_);
    if (slot.watch_memory_) limit = std::min(limit, Clock::now() + kMemoryTick);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now());
  const auto bounded = std::clamp<std::int64_t>(left.count(), 0, 60'000);
  poll(watched.data(), watched.size(), static_cast<int>(bounded));
}

}  // namespace autotune::worker

// The place of one worker: its process, its channel, and the one request it works on. Never blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotune/worker/channel.h"
#include "autotune/worker/messages.h"
#include "autotune/worker/process.h"

namespace autotune::worker {

using Clock = std::chrono::steady_clock;

struct SlotOptions {
  std::filesystem::path executable;
  std::vector<std::string> arguments;
  std::int64_t memory_limit_bytes = 0;  // 0: none
  std::chrono::milliseconds time_limit{60'000};
};

class Slot {
 public:
  enum class State : std::uint8_t { empty, starting, idle, busy };

  // What step() saw.
  struct Greeted {
    Hello hello;
  };
  struct Replied {
    std::string bytes;
  };
  // The process is gone (killed where it hung or ate its memory) and the slot is empty.
  struct Lost {
    State was = State::empty;
    bool timed_out = false;
    bool unseen = false;  // the request was never read: it can be given to another
    std::string why;      // for people, with the worker's own last words
  };
  struct Event {
    std::optional<Greeted> greeted;
    std::optional<Replied> replied;
    std::optional<Lost> lost;
  };

  explicit Slot(SlotOptions options) : options_(std::move(options)) {}

  State state() const { return state_; }
  const std::string& what() const { return what_; }  // of the last good greeting

  Expected<void> start();                 // empty -> starting
  void send(const std::string& message);  // idle -> busy
  Event step();                           // one event at most; call again until there is none
  void end();                             // kills what is there

  // Waits until one of the slots has something to do for step(), or `limit`.
  static void wait(std::span<const Slot> slots, Clock::time_point limit);

 private:
  Event lose(const std::string& reason, bool timed_out = false, bool unread = false);
  bool over_memory() const;

  SlotOptions options_;
  State state_ = State::empty;
  std::optional<Process> process_;
  Inbox inbox_;
  Outbox outbox_;
  std::string what_;
  Clock::time_point deadline_;
  bool watch_memory_ = false;
};

}  // namespace autotune::worker

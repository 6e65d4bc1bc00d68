#include <sched.h>

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "autotune/worker/pool.h"
#include "autotune/worker/slot.h"

namespace autotune::worker {
namespace {

// So many workers in a row that end before they are ready are not bad luck.
constexpr int kStartFailures = 3;

int cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

struct CompilePool::Impl {
  std::vector<Slot> slots;
  std::deque<CompileRequest> queue;
  std::map<std::size_t, CompileRequest> at_work;  // by slot
  std::vector<CompileReply> replies;
  std::string compiler;
  std::optional<Error> refused;  // no worker can compile here
  int start_failures = 0;

  Expected<void> start_one(Slot& slot) {
    auto started = slot.start();
    if (!started) refused = started.error();
    return started;
  }

  // Gives queued requests to idle workers and starts workers for the rest.
  void assign() {
    std::size_t starting = 0;
    for (std::size_t i = 0; i < slots.size() && !queue.empty(); ++i) {
      if (slots[i].state() == Slot::State::starting) ++starting;
      if (slots[i].state() != Slot::State::idle) continue;
      slots[i].send(encode(queue.front()));
      at_work.insert_or_assign(i, std::move(queue.front()));
      queue.pop_front();
    }
    for (Slot& slot : slots) {
      if (starting >= queue.size()) return;
      if (slot.state() != Slot::State::empty) continue;
      if (!start_one(slot)) return;
      ++starting;
    }
  }

  void answer_crashed(std::size_t slot, Outcome outcome, std::string why) {
    CompileReply reply;
    reply.id = at_work.at(slot).id;
    reply.outcome = outcome;
    reply.log = std::move(why);
    at_work.erase(slot);
    replies.push_back(std::move(reply));
  }

  void on_reply(std::size_t i, const std::string& bytes) {
    auto reply = decode_compile_reply(bytes);
    if (!reply || reply->id != at_work.at(i).id) {
      slots[i].end();
      answer_crashed(i, Outcome::compile_crashed, "the worker sent a reply that cannot be read");
      return;
    }
    at_work.erase(i);
    start_failures = 0;
    replies.push_back(std::move(*reply));
  }

  void on_lost(std::size_t i, Slot::Lost lost) {
    if (lost.was == Slot::State::starting || lost.unseen) {
      if (lost.unseen) {
        queue.push_front(std::move(at_work.at(i)));
        at_work.erase(i);
      }
      if (++start_failures >= kStartFailures) {
        refused = Error{ErrorCode::failed, "compile workers do not get ready: " + lost.why};
      }
    } else if (lost.was == Slot::State::busy) {
      start_failures = 0;
      answer_crashed(i, lost.timed_out ? Outcome::timed_out : Outcome::compile_crashed,
                     std::move(lost.why));
    }
  }

  void on_greeting(const Hello& hello) {
    if (!hello.ok) {
      refused = Error{hello.code, hello.message};
      return;
    }
    compiler = hello.what;
  }

  void step(std::size_t i) {
    while (true) {
      Slot::Event event = slots[i].step();
      if (event.greeted) {
        on_greeting(event.greeted->hello);
      } else if (event.replied) {
        on_reply(i, event.replied->bytes);
      } else {
        if (event.lost) on_lost(i, std::move(*event.lost));
        return;
      }
    }
  }

  // One round: hand out, wait, look.
  void turn(Clock::time_point limit) {
    assign();
    if (refused) return;
    Slot::wait(slots, limit);
    for (std::size_t i = 0; i < slots.size(); ++i) step(i);
  }
};

CompilePool::CompilePool(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompilePool::CompilePool(CompilePool&&) noexcept = default;
CompilePool& CompilePool::operator=(CompilePool&&) noexcept = default;
CompilePool::~CompilePool() = default;

Expected<CompilePool> CompilePool::start(const WorkerOptions& options, int jobs) {
  auto impl = std::make_unique<Impl>();
  const SlotOptions slot{
      options.executable, {"worker", "compile"}, options.memory_limit_bytes, options.time_limit};
  for (int i = 0; i < (jobs > 0 ? jobs : cores()); ++i) impl->slots.emplace_back(slot);
  return CompilePool(std::move(impl));
}

void CompilePool::submit(CompileRequest request) {
  impl_->queue.push_back(std::move(request));
  impl_->assign();
}

std::size_t CompilePool::pending() const {
  return impl_->queue.size() + impl_->at_work.size() + impl_->replies.size();
}

Expected<std::vector<CompileReply>> CompilePool::poll(std::chrono::milliseconds timeout) {
  const auto limit = Clock::now() + timeout;
  for (bool last = false; !impl_->refused && impl_->replies.empty() && pending() > 0 && !last;) {
    last = Clock::now() >= limit;
    impl_->turn(limit);
  }
  if (impl_->refused) return tl::unexpected(*impl_->refused);
  return std::exchange(impl_->replies, {});
}

Expected<std::string> CompilePool::compiler() {
  while (impl_->compiler.empty() && !impl_->refused) {
    const bool any = std::any_of(impl_->slots.begin(), impl_->slots.end(), [](const Slot& slot) {
      return slot.state() != Slot::State::empty;
    });
    if (!any && !impl_->start_one(impl_->slots.front())) break;
    impl_->turn(Clock::now() + std::chrono::seconds(1));
  }
  if (impl_->refused) return tl::unexpected(*impl_->refused);
  return impl_->compiler;
}

int CompilePool::jobs() const { return static_cast<int>(impl_->slots.size()); }

void CompilePool::cancel() {
  impl_->queue.clear();
  impl_->replies.clear();
  for (const auto& [i, request] : impl_->at_work) impl_->slots[i].end();
  impl_->at_work.clear();
}

}  // namespace autotune::worker

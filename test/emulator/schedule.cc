#include "test/emulator/schedule.h"

#include <bit>

namespace autotune::emulator {

Schedule::Schedule(std::uint64_t seed) : random_(seed) {
  constexpr double kHaste[] = {0.02, 0.3, 0.9};
  haste_ = kHaste[random_() % 3];
  by_priority_ = random_() % 2 == 0;
  longest_turn_ = random_() % 2 == 0 ? 64 : 2000;
}

double Schedule::chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

Thread& Schedule::pick() {
  if (!by_priority_) return *ready_[random_() % ready_.size()];
  if (random_() % 64 == 0) set_priority(warp_of(*ready_[random_() % ready_.size()]), chance());
  const Warp& foremost = *ready_warps_.rbegin()->second;
  return foremost.first[std::countr_zero(foremost.ready)];
}

void Schedule::wake(Thread& thread) {
  thread.state = State::ready;
  thread.ready_place = ready_.size();
  ready_.push_back(&thread);
  Warp& warp = warp_of(thread);
  if (warp.ready == 0) ready_warps_.insert({warp.priority, &warp});
  warp.ready |= 1u << thread.id % kWarp;
}

void Schedule::wake(std::vector<Thread*>& threads) {
  for (Thread* thread : threads) wake(*thread);
  threads.clear();
}

void Schedule::rest(Thread& thread, State state) {
  thread.state = state;
  Thread* last = ready_.back();
  ready_[thread.ready_place] = last;
  last->ready_place = thread.ready_place;
  ready_.pop_back();
  Warp& warp = warp_of(thread);
  warp.ready &= ~(1u << thread.id % kWarp);
  if (warp.ready == 0) ready_warps_.erase({warp.priority, &warp});
}

void Schedule::set_priority(Warp& warp, double priority) {
  const bool ready = ready_warps_.erase({warp.priority, &warp}) > 0;
  warp.priority = priority;
  if (ready) ready_warps_.insert({priority, &warp});
}

void Schedule::go_on(Thread& first) {
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    Thread& thread = (&first)[lane];
    ++thread.at;
    wake(thread);
  }
}

void Schedule::go_on(std::vector<Thread*>& firsts) {
  for (Thread* first : firsts) go_on(*first);
  firsts.clear();
}

}  // namespace autotune::emulator

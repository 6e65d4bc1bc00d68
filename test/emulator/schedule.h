// Whose turn it is: in an order that a seed decides.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "test/emulator/state.h"

namespace autotune::emulator {

class Schedule {
 public:
  explicit Schedule(std::uint64_t seed);

  std::uint64_t number() { return random_(); }
  double chance();  // from 0 to 1

  bool nobody() const { return ready_.empty(); }
  // Any thread that is ready, or, where warps have priorities, one of the foremost warp; those
  // change now and then.
  Thread& pick();
  // How many instructions it runs at most.
  std::int64_t turn() { return static_cast<std::int64_t>(1 + random_() % longest_turn_); }
  // Whether a copy comes to its end before a thread has its turn.
  bool copy_first() { return chance() < haste_; }

  void wake(Thread& thread);
  void wake(std::vector<Thread*>& threads);
  void rest(Thread& thread, State state);
  // All of a warp, none of which is ready, behind the instruction that it stood at.
  void go_on(Thread& first);
  void go_on(std::vector<Thread*>& firsts);
  // It asks for what others are about to do.
  void let_others_go_first(Warp& warp) { set_priority(warp, warp.priority - 1); }

 private:
  void set_priority(Warp& warp, double priority);

  std::mt19937_64 random_;
  double haste_;
  bool by_priority_;
  std::uint64_t longest_turn_;
  std::vector<Thread*> ready_;
  std::set<std::pair<double, Warp*>> ready_warps_;  // of which a thread is, by priority
};

}  // namespace autotune::emulator

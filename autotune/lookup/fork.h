// What a process must do around fork() so that a child can use what its parent has open.
#pragma once

#include <functional>

namespace autotune::lookup {

// While it lives, fork() calls `lock` first and `unlock` afterwards, in both processes: the child
// finds nothing half done. Every lock that guards what is used on both sides belongs in there.
class AroundFork {
 public:
  AroundFork(std::function<void()> lock, std::function<void()> unlock);
  ~AroundFork();
  AroundFork(const AroundFork&) = delete;
  AroundFork& operator=(const AroundFork&) = delete;

 private:
  friend struct ForkRegistry;
  std::function<void()> lock_;
  std::function<void()> unlock_;
};

// How many forks lie between the first process and this one: what was opened at another number
// belongs to an ancestor.
unsigned fork_generation();

}  // namespace autotune::lookup

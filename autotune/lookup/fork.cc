#include "autotune/lookup/fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace autotune::lookup {

struct ForkRegistry {
  std::mutex mutex;
  std::vector<AroundFork*> members;
  std::atomic<unsigned> generation{0};

  void prepare() {
    mutex.lock();
    for (AroundFork* member : members) member->lock_();
  }
  void release() {
    for (AroundFork* member : members) member->unlock_();
    mutex.unlock();
  }
};

namespace {

// Leaked on purpose: static objects may fork or close sessions at exit.
ForkRegistry& registry() {
  static auto* const made = [] {
    pthread_atfork([] { registry().prepare(); }, [] { registry().release(); },
                   [] {
                     ++registry().generation;
                     registry().release();
                   });
    return new ForkRegistry;
  }();
  return *made;
}

}  // namespace

AroundFork::AroundFork(std::function<void()> lock, std::function<void()> unlock)
    : lock_(std::move(lock)), unlock_(std::move(unlock)) {
  const std::lock_guard hold(registry().mutex);
  registry().members.push_back(this);
}

AroundFork::~AroundFork() {
  const std::lock_guard hold(registry().mutex);
  std::erase(registry().members, this);
}

unsigned fork_generation() { return registry().generation; }

}  // namespace autotune::lookup

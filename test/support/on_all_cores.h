// Work that needs no order, on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace autotune::test {

// `work` of 0 to count - 1, on all cores; it must not use Catch.
inline void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t job = next++; job < count; job = next++) work(job);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace autotune::test

// What a session has answered already.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "autotune/autotune.h"

namespace autotune::lookup {

struct ProblemHash {
  std::size_t operator()(const Problem& problem) const {
    std::size_t hash = std::hash<std::string>{}(problem.family);
    const auto mix = [&hash](auto value) {
      hash = hash * 0x9e3779b97f4a7c15ULL + std::hash<decltype(value)>{}(value);
      hash ^= hash >> 29;
    };
    mix(problem.m);
    mix(problem.n);
    mix(problem.k);
    mix(problem.lda);
    mix(problem.ldb);
    mix(problem.ldc);
    mix(problem.alpha);
    mix(problem.beta);
    mix(static_cast<int>(problem.dtype));
    mix(static_cast<int>(problem.out_dtype));
    mix(static_cast<int>(problem.layout));
    mix(static_cast<int>(problem.mode));
    mix(problem.exact_fp32);
    mix(static_cast<int>(problem.activation));
    return hash;
  }
};

// Thread-safe. Problems are told apart as they were asked, defaults not filled in.
class Memory {
 public:
  using Answer = Expected<BestConfig>;

  std::optional<Answer> find(const Problem& problem) const {
    std::shared_ptr<const Answer> found;
    {
      const std::lock_guard hold(mutex_);
      const auto place = answers_.find(problem);
      if (place == answers_.end()) return std::nullopt;
      found = place->second;
    }
    return *found;
  }

  // What was kept first stays, so that threads that ask at once agree.
  Answer keep(const Problem& problem, Answer answer) {
    auto made = std::make_shared<const Answer>(std::move(answer));
    const std::lock_guard hold(mutex_);
    if (answers_.size() >= kMost) answers_.clear();
    return *answers_.try_emplace(problem, std::move(made)).first->second;
  }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  // Some 30 MB; a program that asks for more different problems looks them up again.
  static constexpr std::size_t kMost = 65536;

  mutable std::mutex mutex_;
  std::unordered_map<Problem, std::shared_ptr<const Answer>, ProblemHash> answers_;
};

}  // namespace autotune::lookup

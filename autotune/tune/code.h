// Machine code for configs: remembered, from the cache, or from the compile workers. Configs that
// differ only in run-time parameters share one compilation.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/worker/messages.h"
#include "autotune/worker/pool.h"
#include "cache/store.h"
#include "kernels/kernel.h"
#include "kernels/verdict.h"

namespace autotune::tune {

struct Code {
  Outcome outcome = Outcome::ok;  // else compile_failed, compile_crashed, timed_out
  std::string image;
  ActualResources actual;
  std::string log;
  double seconds = 0;
};
using CodePtr = std::shared_ptr<const Code>;

// What was compiled lately by source hash, oldest dropped first beyond a bound of bytes. One per
// device and compiler; problems that differ only in their sizes share it.
class CodeMemory {
 public:
  CodePtr find(const std::string& hash) const;
  void keep(const std::string& hash, CodePtr code);

 private:
  std::map<std::string, CodePtr> known_;
  std::deque<std::string> age_;
  std::size_t bytes_ = 0;
};

// A config ready to be compared.
struct Entrant {
  worker::Contender contender;
  CodePtr failed;  // the first of its stages' codes that cannot be launched, if any
};

class CodeSource {
 public:
  using WriteFailed = std::function<void(const Error&)>;

  // `store` may be null. All must outlive the source.
  CodeSource(worker::CompilePool& pool, CodeMemory& memory, cache::Store* store,
             const DeviceSpec& device, std::string compiler, WriteFailed write_failed);
  ~CodeSource();  // forgets what is at work
  CodeSource(const CodeSource&) = delete;
  CodeSource& operator=(const CodeSource&) = delete;

  // What needs no compiler; null where it would take one.
  CodePtr find(const std::string& hash);
  // A caller's ticket comes back from poll() with its code. Whether that needs no compiler.
  bool want(std::uint64_t ticket, const Config& config, const KernelTraits& traits,
            const std::string& hash);
  std::size_t pending() const { return waiting_ + ready_.size(); }
  bool compiling() const { return waiting_ > 0; }
  // How many came from the compiler so far.
  std::int64_t compiled() const { return compiled_; }
  // Waits up to `timeout` for the first one. Errors are those of CompilePool::poll.
  Expected<std::vector<std::pair<std::uint64_t, CodePtr>>> poll(std::chrono::milliseconds timeout);
  // Waits for one config; others that come meanwhile stay for poll(). cancelled with `stop`.
  Expected<CodePtr> get(const Config& config, const KernelTraits& traits, const std::string& hash,
                        const std::function<bool()>& stop);
  // All stages of a config of `problem`, waited for in the same way.
  Expected<Entrant> entrant(const Config& config, const Problem& problem,
                            const std::function<bool()>& stop);
  void forget();

  // Cubins are written to the store when the caller has time: up to `count` of them, or the one
  // that must be there.
  void save(std::size_t count);
  void save(const std::string& hash);
  bool saved() const { return unsaved_.empty(); }

 private:
  struct Job {
    std::string hash;
    std::vector<std::uint64_t> tickets;
  };
  CodePtr from_store(const std::string& hash) const;
  Expected<void> collect(std::chrono::milliseconds timeout);
  void write(const std::string& hash, const Code& code);

  worker::CompilePool& pool_;
  CodeMemory& memory_;
  cache::Store* store_;
  const DeviceSpec& device_;
  std::string compiler_;
  WriteFailed write_failed_;
  std::map<std::uint64_t, Job> jobs_;             // by request id
  std::map<std::string, std::uint64_t> at_work_;  // hash -> request id
  std::vector<std::pair<std::uint64_t, CodePtr>> ready_;
  std::deque<std::pair<std::string, CodePtr>> unsaved_;  // by hash
  std::size_t waiting_ = 0;                              // tickets in jobs_
  std::int64_t compiled_ = 0;
  std::uint64_t next_id_ = 1;
};

// A compile request for a config, as host twin and device make it.
worker::CompileRequest compile_request(std::uint64_t id, const Config& config,
                                       const KernelTraits& traits, const DeviceSpec& device);

// What a cubin says of itself against prediction and device, before any launch: the limit that it
// breaks, if any. A difference between cubin and prediction is a bug in this program: failed, with
// both numbers.
Expected<std::optional<Verdict>> judge(const Config& config, const Resources& predicted,
                                       const ActualResources& actual, const DeviceSpec& device);

}  // namespace autotune::tune

// The library for programs that start often and must not wait: a session opens the cache and a
// bundle once, remembers its answers, and launches stored code. It needs neither YAML nor, for what
// is stored, a compiler. Nothing here throws, prints or exits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "autotune/autotune.h"
#include "autotune/types.h"

namespace autotune {

struct SessionOptions {
  std::filesystem::path cache;   // empty: the user's (see `autotune cache path`)
  bool use_cache = true;         // false: neither read nor written; no home folder is needed
  std::filesystem::path bundle;  // made by `autotune bundle`; empty: none. Name only files that you
                                 // would load a library from: their code runs on the GPU
  std::string device;            // name or slug of a known GPU, taken as known: no driver is asked
                                 // for an answer. Empty: the GPU here that the driver counts as
  int ordinal = 0;               // `ordinal`
  bool allow_compile = true;     // whether kernel() may compile what is not stored, with NVRTC
};

// Thread-safe: any number of threads may use one session. Fork-aware: a child process goes on with
// what was answered before the fork and opens the cache anew for the rest. (A CUDA context does not
// outlive a fork, whoever made it.) While one thread forks, no other may open or end a session.
// Move-only; moving is not thread-safe.
class Session {
 public:
  // Asks cache, then bundle, then the winners that came with the library. A cache that cannot be
  // read is left out, which message() tells. Errors: no_gpu (no device named and none here),
  // bad_input (an unknown device; a bundle for another architecture), io_failed, foreign_file or
  // corrupt_file for the bundle.
  static Expected<Session> open(const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // What to run `problem` with, as best_config() in autotune.h; but with a bundle, or where
  // compiling is not allowed, the performance model's choice is the answer only where nothing like
  // the problem was tuned, for its code is stored nowhere; and where compiling is not allowed, what
  // code is stored of comes before winners that came with the library alone. The second time the
  // same problem is a lookup in memory. An answer stays the same for as long as the session lives,
  // also when the cache changes; but one that was asked for more than 65,535 different problems
  // starts anew. Errors: bad_input (the problem), nothing_fits.
  Expected<BestConfig> best_config(const Problem& problem) const;

  // The answer as an object to launch, loaded into the CUDA context that is current on this thread;
  // to be called once per problem and context, outside of stream capture. The session may go
  // before the kernel. Launching allocates nothing and can be captured in a CUDA graph. The first
  // kernel that runs in clusters launches a few short ones on a stream of its own and waits for
  // them, to learn where the GPU runs these. Errors: those of best_config(); no_compiler where the
  // code is stored nowhere and NVRTC is not here or compiling was not allowed; no_gpu without a
  // driver or a current context; failed.
  Expected<Kernel> kernel(const Problem& problem) const;

  // The GPU that it answers for: "NVIDIA H200".
  const std::string& device() const;
  // Something that the user should be told once ("cache ... gives no compiled kernels: ..."), or
  // empty.
  const std::string& message() const;

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune

// The library: the best known configuration of a problem on the GPU at hand, and a kernel to launch
// it. Nothing here throws, prints or exits; the caller's CUDA context and stream are used as they
// are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "autotune/types.h"

namespace autotune {

namespace lookup {
struct KernelMaker;
}

// How good an answer is.
enum class Match : std::uint8_t {
  exact,            // tuned for exactly this problem on this device
  nearest_problem,  // tuned for a similar problem on this device, checked to fit this one
  other_device,     // tuned on another device, checked to fit this one
  default_config,   // the performance model's choice: always fits, never measured
};
std::string_view to_string(Match match);  // "default" for default_config, the others as here

struct BestOptions {
  std::filesystem::path cache;  // empty: the user's (see `autotune cache path`)
  std::string device;           // name or slug for a GPU that is not here; empty: that of `ordinal`
  int ordinal = 0;              // CUDA device
};

struct BestConfig {
  Problem problem;     // with every default filled in
  std::string device;  // the GPU it was chosen for: "NVIDIA H200"
  std::string config;  // canonical: "mma:block_m=128,..."; of geglu_mlp two, "... + ..."
  Match match = Match::default_config;
  std::string from_problem;  // the tuned problem it stems from, where not this one; of geglu_mlp
                             // those that its kernels' configs stem from
  double median_us = 0;      // as measured when tuned (for from_problem, if any); 0: never measured
};

// What to run `problem` with. Errors: bad_input (the problem or device name), nothing_fits, no_gpu
// (no device name given and none here). A cache that cannot be read is an answer from the next
// source, not an error.
Expected<BestConfig> best_config(const Problem& problem, const BestOptions& options = {});

// A compiled configuration in the caller's current CUDA context. Move-only; unloaded with its last
// owner, which must be destroyed while that context lives.
class Kernel {
 public:
  // Takes the cubin from the cache, else compiles it with NVRTC (and keeps it in the cache), for
  // the CUDA device `options.ordinal`; `options.device` is not asked. The first that runs in
  // clusters asks the GPU where, see Session::kernel(). Errors: bad_input (a problem or config that
  // is none, or another GPU than that device), nothing_fits, no_gpu, no_compiler (not cached and no
  // NVRTC), failed.
  static Expected<Kernel> load(const BestConfig& best, const BestOptions& options = {});

  Kernel(Kernel&&) noexcept;
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();

  // C = alpha * A * B + beta * C, or activation(A * B) .* (A * Up), or that times Down, on `stream`
  // (a CUstream / cudaStream_t; null: the default one). a, b, c: device pointers aligned to 16
  // bytes, c is read where the problem's beta != 0; of geglu_mlp a is x, b the gate's weights and c
  // is y. `up`, like b: of geglu and geglu_mlp; `down`, like them: of geglu_mlp; else null.
  // `workspace`: workspace_bytes() of device memory, aligned to 16 bytes, null where that is 0. Its
  // first 64 KiB must be zero before the first launch, and every launch leaves them so. Kernels can
  // share a workspace, but not launches that may run at the same time, and of geglu_mlp, which
  // launches twice, no calls at the same time either. The context that the kernel was loaded into
  // must be current. Asynchronous; errors: bad_input (a pointer that is null, not aligned or of
  // another family), failed (of the launch itself). Allocates nothing, may be captured in a CUDA
  // graph, and may be called by several threads at once. Where parts of k wait for each other, the
  // launch is a cooperative one: it begins once all of its blocks can run, and is refused where the
  // context has too few SMs for them. With a workspace that was not zero, or that another launch
  // uses, it may never end.
  Expected<void> launch(const void* a, const void* b, void* c, void* stream = nullptr,
                        void* workspace = nullptr, const void* up = nullptr,
                        const void* down = nullptr) const;

  std::int64_t workspace_bytes() const;

 private:
  friend struct lookup::KernelMaker;
  struct Impl;
  explicit Kernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace autotune

// Move-only owners of what the driver hands out. Their destructors ignore errors: a context that a
// fault has poisoned refuses everything, and its process is about to end.
#pragma once

#include <utility>

#include "autotune/gpu/driver.h"

namespace autotune::gpu {

// One handle and how it is given back. `Release` is called as Release{}(api, handle).
template <class Raw, class Release>
class Handle {
 public:
  Handle() = default;
  explicit Handle(Raw raw) noexcept : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, Raw{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Handle() {
    if (raw_ == Raw{}) return;
    if (auto api = driver()) Release{}(**api, raw_);
  }
  Raw get() const { return raw_; }

 private:
  Raw raw_{};
};

struct ReleaseModule {
  void operator()(const DriverApi& api, CUmodule module) const noexcept {
    api.cuModuleUnload(module);
  }
};
struct ReleaseHost {
  void operator()(const DriverApi& api, void* pointer) const noexcept {
    api.cuMemFreeHost(pointer);
  }
};
struct ReleaseStream {
  void operator()(const DriverApi& api, CUstream stream) const noexcept {
    api.cuStreamDestroy(stream);
  }
};
struct ReleaseEvent {
  void operator()(const DriverApi& api, CUevent event) const noexcept { api.cuEventDestroy(event); }
};
struct ReleaseGraph {
  void operator()(const DriverApi& api, CUgraph graph) const noexcept { api.cuGraphDestroy(graph); }
};
struct ReleaseGraphExec {
  void operator()(const DriverApi& api, CUgraphExec graph) const noexcept {
    api.cuGraphExecDestroy(graph);
  }
};

using Module = Handle<CUmodule, ReleaseModule>;
using HostBuffer = Handle<void*, ReleaseHost>;
using Stream = Handle<CUstream, ReleaseStream>;
using Event = Handle<CUevent, ReleaseEvent>;
using Graph = Handle<CUgraph, ReleaseGraph>;
using GraphExec = Handle<CUgraphExec, ReleaseGraphExec>;

// The device's primary context, which the CUDA libraries share, kept current on this thread.
class Context {
 public:
  Context() = default;
  static Expected<Context> create(int device_index);
  Context(Context&& other) noexcept
      : device_(other.device_), held_(std::exchange(other.held_, false)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(held_, other.held_);
    return *this;
  }
  ~Context();

 private:
  CUdevice device_ = 0;
  bool held_ = false;
};

Expected<Module> load_module(const void* image);
Expected<CUfunction> function_of(const Module& module, const char* name);
Expected<Stream> create_stream();
Expected<Event> create_event();

}  // namespace autotune::gpu

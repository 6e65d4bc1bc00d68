#include "autotune/gpu/gpcs.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "autotune/gpu/handles.h"

namespace autotune::gpu {
namespace {

constexpr int kFirstWithClusters = 90;
// One of 16 takes most of a GPC, where the driver allows it.
constexpr std::array kClusters{1, 2, 4, 8, 16};
constexpr int kLargestPlaced = 8;

// Thread 0 of each block writes its SM; the block stays until all have begun. PTX, for a program
// without NVRTC loads kernels too.
constexpr const char* kWhere = R"ptx(
.version 7.8
.target sm_90
.address_size 64
.visible .entry where(.param .u64 out, .param .u64 clocks)
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .reg .b64 %l<6>;
  mov.u64 %l1, %clock64;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra STAY;
  ld.param.u64 %l2, [out];
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %l3, %r2, 4;
  add.s64 %l2, %l2, %l3;
  mov.u32 %r3, %smid;
  st.global.u32 [%l2], %r3;
STAY:
  ld.param.u64 %l4, [clocks];
LOOP:
  mov.u64 %l5, %clock64;
  sub.s64 %l5, %l5, %l1;
  setp.lt.u64 %p2, %l5, %l4;
  @%p2 bra LOOP;
  ret;
}
)ptx";
constexpr std::uint64_t kClocksToStay = 20'000;
// Other work on the GPU keeps blocks of a launch waiting, but seldom for all of these.
constexpr int kAttempts = 16;

// Sets of SMs that are known to be of one GPC.
class Sets {
 public:
  int of(int sm) {
    while (true) {
      const int next = parent_.emplace(sm, sm).first->second;
      if (next == sm) return sm;
      sm = next;
    }
  }
  void join(int a, int b) {
    const auto [root, other] = std::minmax({of(a), of(b)});
    parent_[other] = root;
  }
  // 0 and on for each set, the smallest first; of two of one size the one with the lowest SM.
  std::map<int, int> by_size() {
    std::map<int, int> sizes;
    for (const auto& [sm, parent] : parent_) ++sizes[of(sm)];
    std::vector<std::pair<int, int>> sorted;
    for (const auto& [set, size] : sizes) sorted.emplace_back(size, set);
    std::sort(sorted.begin(), sorted.end());
    std::map<int, int> numbers;
    for (const auto& [size, set] : sorted) {
      numbers.emplace(set, static_cast<int>(numbers.size()));
    }
    return numbers;
  }

 private:
  std::map<int, int> parent_;
};

bool on_one_each(const std::vector<int>& sms) {
  return std::set<int>(sms.begin(), sms.end()).size() == sms.size();
}

// What this thread does to a stream of its own is no part of a capture, of whichever thread.
class OutsideCapture {
 public:
  explicit OutsideCapture(const DriverApi& api) : api_(api) { exchange(); }
  ~OutsideCapture() { exchange(); }
  OutsideCapture(const OutsideCapture&) = delete;
  OutsideCapture& operator=(const OutsideCapture&) = delete;

 private:
  void exchange() { api_.cuThreadExchangeStreamCaptureMode(&mode_); }
  const DriverApi& api_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class Probe {
 public:
  // Not `ready` where the driver refuses any of it.
  explicit Probe(const DriverApi& api, const DeviceSpec& device) : api_(api), device_(device) {
    auto module = load_module(kWhere);
    if (!module) return;
    module_ = std::move(*module);
    auto stream = create_stream();
    if (!stream) return;
    stream_ = std::move(*stream);
    void* host = nullptr;
    const std::size_t bytes = device.sm_count * sizeof(int);
    if (api.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) return;
    seen_ = HostBuffer(host);
    auto function = function_of(module_, "where");
    if (!function) return;
    function_ = *function;
    const auto smem = static_cast<int>(device.limits.smem_optin_per_block);
    ready = api.cuMemHostGetDevicePointer(&address_, host, 0) == CUDA_SUCCESS &&
            api.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                   smem) == CUDA_SUCCESS;
    // An error leaves clusters of 16 out.
    api.cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }

  // All kinds of clusters, or none where one could not be seen undisturbed.
  std::vector<SeenGrid> grids() {
    std::vector<SeenGrid> grids;
    for (const int cluster : kClusters) {
      auto sms = seen(cluster);
      if (!sms) return {};
      grids.push_back({cluster, std::move(*sms)});
    }
    return grids;
  }

  bool ready = false;

 private:
  // The SM of each block of a launch, no block where it was refused; nullopt where others were in
  // the way.
  std::optional<std::vector<int>> seen(int cluster) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const int blocks = launch(cluster);
      if (api_.cuStreamSynchronize(stream_.get()) != CUDA_SUCCESS) return std::nullopt;
      const int* const first = static_cast<const int*>(seen_.get());
      std::vector<int> sms(first, first + blocks);
      if (on_one_each(sms)) return sms;
    }
    return std::nullopt;
  }

  // As many clusters as run at once; the blocks of the launch, 0 where there was none.
  int launch(int cluster) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(cluster);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(device_.limits.smem_optin_per_block);
    config.hStream = stream_.get();
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    if (api_.cuOccupancyMaxActiveClusters(&clusters, function_, &config) != CUDA_SUCCESS) return 0;
    const int blocks = std::min(clusters * cluster, device_.sm_count / cluster * cluster);
    if (blocks == 0) return 0;
    config.gridDimX = static_cast<unsigned>(blocks);
    std::uint64_t clocks = kClocksToStay;
    std::array<void*, 2> arguments{&address_, &clocks};
    const CUresult result = api_.cuLaunchKernelEx(&config, function_, arguments.data(), nullptr);
    return result == CUDA_SUCCESS ? blocks : 0;
  }

  const DriverApi& api_;
  const DeviceSpec& device_;
  Module module_;
  Stream stream_;
  HostBuffer seen_;
  CUdeviceptr address_ = 0;
  CUfunction function_ = nullptr;
};

std::vector<ClusterGpcs> ask(const DriverApi& api, const DeviceSpec& device) {
  const OutsideCapture outside(api);
  Probe probe(api, device);
  if (!probe.ready) return {};
  return gpcs_of(probe.grids());
}

}  // namespace

std::vector<ClusterGpcs> gpcs_of(std::span<const SeenGrid> grids) {
  Sets sets;
  std::set<int> clustered;  // SMs that a cluster of more than two takes
  for (const SeenGrid& grid : grids) {
    for (std::size_t i = 0; i < grid.sms.size(); ++i) {
      sets.join(grid.sms[i], grid.sms[i - i % grid.cluster]);
      if (grid.cluster > kPairCluster) clustered.insert(grid.sms[i]);
    }
  }
  for (const SeenGrid& grid : grids) {
    if (grid.cluster != 1) continue;
    for (std::size_t i = 1; i < grid.sms.size(); ++i) {
      if (clustered.count(grid.sms[i]) == 0) sets.join(grid.sms[i], grid.sms[i - 1]);
    }
  }
  std::map<int, int> number = sets.by_size();
  if (number.size() > kMostGpcs) return {};

  std::vector<ClusterGpcs> found;
  for (const SeenGrid& grid : grids) {
    if (grid.cluster == 1 || grid.cluster > kLargestPlaced || grid.sms.empty()) continue;
    ClusterGpcs& list = found.emplace_back();
    list.blocks = grid.cluster;
    for (std::size_t i = 0; i < grid.sms.size(); i += grid.cluster) {
      list.gpcs.push_back(number[sets.of(grid.sms[i])]);
    }
  }
  return found;
}

std::vector<ClusterGpcs> cluster_gpcs(const DeviceSpec& device) {
  if (device.limits.cc < kFirstWithClusters) return {};
  auto api = driver();
  CUdevice index = 0;
  if (!api || (*api)->cuCtxGetDevice(&index) != CUDA_SUCCESS) return {};
  static auto* const mutex = new std::mutex;  // leaked, as the driver is
  static auto* const told = new std::map<CUdevice, std::vector<ClusterGpcs>>;
  const std::lock_guard lock(*mutex);
  std::vector<ClusterGpcs>& gpcs = (*told)[index];
  if (gpcs.empty()) gpcs = ask(**api, device);
  return gpcs;
}

}  // namespace autotune::gpu

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

constexpr const char* kEntry = "where_blocks_run";
// One of 16 takes most of a GPC, where the driver allows it.
constexpr std::array kClusters{1, 2, 4, 8, 16};
constexpr int kLargestPlaced = 8;

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
  Probe(const DriverApi& api, CUmodule module, const DeviceSpec& device)
      : api_(api), device_(device) {
    if (api.cuModuleGetFunction(&function_, module, kEntry) != CUDA_SUCCESS) return;
    auto stream = create_stream();
    if (!stream) return;
    stream_ = std::move(*stream);
    void* host = nullptr;
    const std::size_t bytes = device.sm_count * sizeof(int);
    if (api.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) return;
    seen_ = HostBuffer(host);
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
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(cluster);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(device_.limits.smem_optin_per_block);
    config.hStream = stream_.get();
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    config.attrs = &attribute;
    int blocks = device_.sm_count;
    if (cluster > 1) {  // with the attribute, blocks by themselves run in the order of clusters
      config.numAttrs = 1;
      int clusters = 0;
      if (api_.cuOccupancyMaxActiveClusters(&clusters, function_, &config) != CUDA_SUCCESS) {
        return 0;
      }
      blocks = std::min(clusters * cluster, blocks / cluster * cluster);
    }
    if (blocks == 0) return 0;
    config.gridDimX = static_cast<unsigned>(blocks);
    std::uint64_t clocks = kClocksToStay;
    std::array<void*, 2> arguments{&address_, &clocks};
    const CUresult result = api_.cuLaunchKernelEx(&config, function_, arguments.data(), nullptr);
    return result == CUDA_SUCCESS ? blocks : 0;
  }

  const DriverApi& api_;
  const DeviceSpec& device_;
  CUfunction function_ = nullptr;
  Stream stream_;
  HostBuffer seen_;
  CUdeviceptr address_ = 0;
};

std::vector<ClusterGpcs> ask(const DriverApi& api, CUmodule module, const DeviceSpec& device) {
  const OutsideCapture outside(api);
  Probe probe(api, module, device);
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

std::vector<ClusterGpcs> cluster_gpcs(void* module, const DeviceSpec& device) {
  auto api = driver();
  CUdevice index = 0;
  if (!api || (*api)->cuCtxGetDevice(&index) != CUDA_SUCCESS) return {};
  static auto* const mutex = new std::mutex;  // leaked, as the driver is
  static auto* const told = new std::map<CUdevice, std::vector<ClusterGpcs>>;
  const std::lock_guard lock(*mutex);
  std::vector<ClusterGpcs>& gpcs = (*told)[index];
  if (gpcs.empty()) gpcs = ask(**api, static_cast<CUmodule>(module), device);
  return gpcs;
}

}  // namespace autotune::gpu

#include "autotune/gpu/gpcs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "autotune/gpu/handles.h"

namespace autotune::gpu {
namespace {

// One of 16 takes most of a GPC, where the driver allows it.
constexpr std::array kClusters{2, 4, 8, 16};
constexpr int kLargestPlaced = 8;

constexpr std::uint64_t kClocksToStay = 20'000;
// Other work on the GPU keeps blocks of a launch waiting, but seldom for all of these.
constexpr int kLaunches = 16;
// Nor is a GPU that is busy each time asked whenever a kernel is loaded.
constexpr int kMostAsked = 3;

// Sets of SMs that are known to be of one GPC.
class GpcSets {
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
  // nullopt where the driver refuses any of it.
  static std::optional<Probe> create(const DriverApi& api, CUfunction where,
                                     const DeviceSpec& device) {
    Probe probe(api, where, device);
    auto stream = create_stream();
    if (!stream) return std::nullopt;
    probe.stream_ = std::move(*stream);
    void* page = nullptr;
    const auto smem = static_cast<int>(device.limits.smem_optin_per_block);
    CUresult state =
        api.cuFuncSetAttribute(where, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, smem);
    if (state == CUDA_SUCCESS) {
      state = api.cuMemHostAlloc(&page, device.sm_count * sizeof(int), CU_MEMHOSTALLOC_DEVICEMAP);
    }
    probe.page_ = HostBuffer(page);
    if (state == CUDA_SUCCESS) state = api.cuMemHostGetDevicePointer(&probe.address_, page, 0);
    if (state != CUDA_SUCCESS) return std::nullopt;
    // An error leaves clusters of 16 out.
    api.cuFuncSetAttribute(where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    return probe;
  }

  // All kinds of clusters, or none where one could not be seen undisturbed.
  std::vector<SeenGrid> grids() {
    std::vector<SeenGrid> grids;
    for (const int cluster : kClusters) {
      auto sms = undisturbed(cluster);
      if (!sms) return {};
      grids.push_back({cluster, std::move(*sms)});
    }
    return grids;
  }

 private:
  Probe(const DriverApi& api, CUfunction where, const DeviceSpec& device)
      : api_(&api), device_(&device), where_(where) {}

  // The SM of each block as two launches had it, no block where these were refused. Which SMs are
  // still busy as others begin is not the same twice.
  std::optional<std::vector<int>> undisturbed(int cluster) {
    std::set<std::vector<int>> seen;
    for (int i = 0; i < kLaunches; ++i) {
      const int blocks = launch(cluster);
      if (api_->cuStreamSynchronize(stream_.get()) != CUDA_SUCCESS) return std::nullopt;
      const int* const first = static_cast<const int*>(page_.get());
      std::vector<int> sms(first, first + blocks);
      if (on_one_each(sms) && !seen.insert(sms).second) return sms;
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
    config.sharedMemBytes = static_cast<unsigned>(device_->limits.smem_optin_per_block);
    config.hStream = stream_.get();
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    if (api_->cuOccupancyMaxActiveClusters(&clusters, where_, &config) != CUDA_SUCCESS) return 0;
    const int blocks = std::min(clusters, device_->sm_count / cluster) * cluster;
    if (blocks == 0) return 0;
    config.gridDimX = static_cast<unsigned>(blocks);
    std::uint64_t clocks = kClocksToStay;
    std::array<void*, 2> arguments{&address_, &clocks};
    const CUresult state = api_->cuLaunchKernelEx(&config, where_, arguments.data(), nullptr);
    return state == CUDA_SUCCESS ? blocks : 0;
  }

  const DriverApi* api_;
  const DeviceSpec* device_;
  CUfunction where_;
  Stream stream_;
  HostBuffer page_;  // where a launch leaves the SM of each block
  CUdeviceptr address_ = 0;
};

std::vector<ClusterGpcs> ask(const DriverApi& api, CUfunction where, const DeviceSpec& device) {
  const OutsideCapture outside(api);
  auto probe = Probe::create(api, where, device);
  if (!probe) return {};
  return gpcs_of(probe->grids());
}

struct Answer {
  std::vector<ClusterGpcs> gpcs;
  int asked = 0;
};

}  // namespace

std::vector<ClusterGpcs> gpcs_of(std::span<const SeenGrid> grids) {
  GpcSets sets;
  for (const SeenGrid& grid : grids) {
    for (std::size_t i = 0; i < grid.sms.size(); ++i) {
      sets.join(grid.sms[i], grid.sms[i - i % grid.cluster]);
    }
  }
  std::map<int, int> number_of = sets.by_size();
  if (number_of.size() > kMostGpcs) return {};

  std::vector<ClusterGpcs> found;
  for (const SeenGrid& grid : grids) {
    if (grid.cluster > kLargestPlaced || grid.sms.empty()) continue;
    ClusterGpcs& list = found.emplace_back();
    list.blocks = grid.cluster;
    for (std::size_t i = 0; i < grid.sms.size(); i += grid.cluster) {
      list.gpcs.push_back(number_of[sets.of(grid.sms[i])]);
    }
  }
  return found;
}

std::vector<ClusterGpcs> cluster_gpcs(void* module, const DeviceSpec& device) {
  auto api = driver();
  CUdevice index = 0;
  CUfunction where = nullptr;
  if (!api || (*api)->cuCtxGetDevice(&index) != CUDA_SUCCESS ||
      (*api)->cuModuleGetFunction(&where, static_cast<CUmodule>(module), kWhereEntry) !=
          CUDA_SUCCESS) {
    return {};
  }
  static auto* const mutex = new std::mutex;  // leaked, as the driver is
  static auto* const answers = new std::map<CUdevice, Answer>;
  const std::lock_guard lock(*mutex);
  Answer& answer = (*answers)[index];
  if (answer.gpcs.empty() && answer.asked < kMostAsked) {
    ++answer.asked;
    answer.gpcs = ask(**api, where, device);
  }
  return answer.gpcs;
}

}  // namespace autotune::gpu

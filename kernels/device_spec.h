// What one GPU SKU can hold and how fast it is. Filled from configs/gpus/*.yaml, and for a GPU that
// is present, from the driver's own attributes, which win.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autotune/types.h"
#include "kernels/model_coefficients.h"

namespace autotune {

enum class Feature : std::uint32_t {
  cp_async = 1u << 0,
  tma = 1u << 1,
  wgmma = 1u << 2,
  setmaxnreg = 1u << 3,
  tcgen05 = 1u << 4,
};

// Limits of a compute capability; bytes and counts. All numbers, and their sources, stand in
// configs/gpus/compute_capabilities.yaml.
struct ArchLimits {
  int cc = 0;        // 90 for 9.0
  std::string arch;  // --gpu-architecture, "sm_90a"
  std::int64_t smem_per_sm = 0;
  std::int64_t smem_optin_per_block = 0;     // limit of dynamic shared memory after the opt-in
  std::int64_t smem_reserved_per_block = 0;  // taken by the driver from each block's share
  std::int64_t smem_granularity = 0;
  std::int64_t static_smem_per_block = 0;  // without the opt-in
  int warps_per_sm = 0;
  int threads_per_sm = 0;
  int threads_per_block = 0;
  int blocks_per_sm = 0;
  int registers_per_sm = 0;
  int registers_per_block = 0;
  int registers_per_thread = 0;
  int register_unit_per_warp = 0;  // registers are given to a warp in steps of this many
  int sub_partitions = 0;          // a block's warps round up to this for the register check
  int named_barriers = 0;
  int cluster_portable = 0;
  std::uint32_t features = 0;           // Feature bits
  std::vector<std::string> mma_dtypes;  // "f16", "bf16", "tf32", ...

  // What a block takes of an SM's shared memory when it asks for so many bytes.
  std::int64_t smem_taken(std::int64_t bytes) const {
    const std::int64_t unit = smem_granularity > 1 ? smem_granularity : 1;
    return (bytes + smem_reserved_per_block + unit - 1) / unit * unit;
  }

  bool has(Feature feature) const { return (features & static_cast<std::uint32_t>(feature)) != 0; }

  friend bool operator==(const ArchLimits&, const ArchLimits&) = default;
};

struct ReadPoint {
  double mib;
  double us;

  friend bool operator==(const ReadPoint&, const ReadPoint&) = default;
};

// Where a grid of clusters of so many blocks runs, each on SMs of its own: the GPC of each cluster,
// below kMostGpcs, in the order of the grid. A smaller grid runs as the first clusters of a larger
// one do, but for the GPC where the first round of them begins (kernels/gemm/NOTES.md).
inline constexpr int kMostGpcs = 32;
struct ClusterGpcs {
  int blocks = 0;
  std::vector<int> gpcs;

  friend bool operator==(const ClusterGpcs&, const ClusterGpcs&) = default;
};

struct DeviceSpec {
  std::string name;  // as the driver reports it: "NVIDIA H200"
  std::string slug;  // "nvidia-h200"
  ArchLimits limits;
  int sm_count = 0;
  int clustered_sms = 0;  // that clusters of more than two blocks reach at once; 0: nobody knows
  int gpc_sms = 0;        // in a GPC, where these have one way to the L2; 0: nobody knows
  double boost_mhz = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t dram_bytes = 0;
  double dram_gb_per_s = 0;
  double f16_bf16_tflops = 0;  // dense, fp32 accumulate; 0 where not supported
  double fp8_tflops = 0;
  double tf32_tflops = 0;
  double fp32_tflops = 0;
  std::vector<std::string> unverified;  // names of fields whose value nobody verified ("?")
  std::vector<std::string> derived;     // names of fields that are SMs x clock x rate ("p")

  // Measured on such a GPU where known, else 0 / empty and the datasheet's numbers serve.
  double launch_us = 0;                 // an empty kernel between two events
  double measured_f16_bf16_tflops = 0;  // sustained in short bursts on random inputs
  std::vector<ReadPoint> cold_read_us;  // time to read so many MiB from cold DRAM, ascending

  // Asked of the GPU itself before launches (LoadedKernel::placed); in no file.
  std::vector<ClusterGpcs> cluster_gpcs;

  ModelCoefficients model;  // fitted to such a GPU where somebody did, else the defaults

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

// "NVIDIA H100 80GB HBM3" -> "nvidia-h100-80gb-hbm3".
std::string slug_of(std::string_view device_name);

// The fingerprint that winners are stored under: name, cc, SM count, opt-in shared memory and
// memory size class (whole GiB rounded to a power-of-two fraction, so ECC does not change it).
std::string fingerprint(const DeviceSpec& device);

// The name that such a fingerprint begins with; the whole text where it is none.
std::string_view name_in_fingerprint(std::string_view fingerprint);

// The largest cluster that finds room on all SMs: these come in pairs.
inline constexpr int kPairCluster = 2;

// SMs that clusters of so many blocks reach at once, of at most `max_sms` (0: of all): the groups
// that a cluster runs in do not divide by every size. nullopt where nobody knows it of this GPU.
std::optional<int> reached_sms(const DeviceSpec& device, int cluster, int max_sms);
// The same, and all of them where nobody knows.
int presumed_sms(const DeviceSpec& device, int cluster, int max_sms);

// A place for each of a grid's first clusters of so many blocks, 0 and on, so that those on one GPC
// have places one behind the other; in the order of the grid where nobody knows where they run, or
// for those that do not run at once with the first. Takes no memory.
void place_by_gpc(const DeviceSpec& device, int cluster, std::span<unsigned char> places);

// Hardware floor in microseconds for moving `bytes` from cold DRAM and doing `flops` operations of
// `dtype`, of fp32 on the FFMA units alone where `exact_fp32`; `measured` is set to whether
// measured curves (true) or the datasheet (false) served.
double floor_us(const DeviceSpec& device, DType dtype, double flops, double bytes, bool* measured,
                bool exact_fp32 = false);

}  // namespace autotune

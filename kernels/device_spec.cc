#include "kernels/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace autotune {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

// Upwards to a quarter step between powers of two: 14.8 -> 16, 22.5 -> 24, 139.8 -> 160. A card
// reports its nominal size or a little less, with ECC up to 1/16 less; no step is that narrow.
std::int64_t memory_class_gib(std::int64_t bytes) {
  const std::int64_t gib = (std::max<std::int64_t>(bytes, 1) + (1LL << 30) - 1) >> 30;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(gib)));
  const std::int64_t step = std::max<std::int64_t>(1, power / 4);
  return (gib + step - 1) / step * step;
}

double line_through(const ReadPoint& a, const ReadPoint& b, double mib) {
  return a.us + (b.us - a.us) * (mib - a.mib) / (b.mib - a.mib);
}

// The measured curve; beyond its ends the slope of the last segment goes on, never below a launch.
double read_us(const DeviceSpec& device, double bytes) {
  const auto& curve = device.cold_read_us;
  const double mib = bytes / kMiB;
  if (curve.size() == 1) {
    return line_through({0.0, device.launch_us}, curve.front(), mib);
  }
  const auto above = std::find_if(curve.begin() + 1, curve.end() - 1,
                                  [mib](const ReadPoint& point) { return point.mib >= mib; });
  return std::max(device.launch_us, line_through(*(above - 1), *above, mib));
}

struct Rate {
  double tflops = 0;
  bool measured = false;
};

Rate compute_rate(const DeviceSpec& device, DType dtype, bool exact_fp32) {
  const bool known = device.measured_f16_bf16_tflops > 0;
  switch (dtype) {
    case DType::bf16:
    case DType::fp16:
      return {known ? device.measured_f16_bf16_tflops : device.f16_bf16_tflops, known};
    case DType::tf32:
      // The tensor cores share one power budget, so tf32 falls short of its peak by as much.
      if (known && device.f16_bf16_tflops > 0) {
        return {device.tf32_tflops * device.measured_f16_bf16_tflops / device.f16_bf16_tflops,
                true};
      }
      return {device.tf32_tflops, false};
    case DType::fp32:
      // Tensor cores take six bf16 products for one of fp32.
      const Rate parts = compute_rate(device, DType::bf16, false);
      if (!exact_fp32 && parts.tflops / 6 > device.fp32_tflops) {
        return {parts.tflops / 6, parts.measured};
      }
      return {device.fp32_tflops, false};
  }
  return {};
}

}  // namespace

std::string slug_of(std::string_view device_name) {
  std::string slug;
  for (const char c : device_name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      slug += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  if (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug;
}

std::string fingerprint(const DeviceSpec& device) {
  return fmt::format("{} cc={} sms={} smem={} memory={}GiB", device.name, device.limits.cc,
                     device.sm_count, device.limits.smem_optin_per_block,
                     memory_class_gib(device.dram_bytes));
}

std::string_view name_in_fingerprint(std::string_view fingerprint) {
  return fingerprint.substr(0, fingerprint.rfind(" cc="));
}

std::optional<int> reached_sms(const DeviceSpec& device, int cluster, int max_sms) {
  const int sms = max_sms > 0 ? std::min(device.sm_count, max_sms) : device.sm_count;
  if (cluster > kPairCluster && device.clustered_sms == 0) return std::nullopt;
  const int reached = cluster > kPairCluster ? std::min(sms, device.clustered_sms) : sms;
  return std::max(reached / cluster * cluster, std::min(cluster, sms));
}

int presumed_sms(const DeviceSpec& device, int cluster, int max_sms) {
  const std::optional<int> reached = reached_sms(device, cluster, max_sms);
  return reached ? *reached : *reached_sms(device, 1, max_sms);
}

void place_by_gpc(const DeviceSpec& device, int cluster, std::span<unsigned char> places) {
  std::iota(places.begin(), places.end(), static_cast<unsigned char>(0));
  const auto known =
      std::find_if(device.cluster_gpcs.begin(), device.cluster_gpcs.end(),
                   [cluster](const ClusterGpcs& each) { return each.blocks == cluster; });
  if (known == device.cluster_gpcs.end()) return;
  const std::size_t count = std::min(places.size(), known->gpcs.size());
  std::array<int, kMostGpcs + 1> next{};  // the place of each GPC's next cluster
  for (std::size_t i = 0; i < count; ++i) ++next[known->gpcs[i] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = static_cast<unsigned char>(next[known->gpcs[i]]++);
  }
}

double floor_us(const DeviceSpec& device, DType dtype, double flops, double bytes, bool* measured,
                bool exact_fp32) {
  const bool curve_known = !device.cold_read_us.empty();
  double memory_us = device.launch_us;
  if (curve_known) {
    memory_us = read_us(device, bytes);
  } else if (device.dram_gb_per_s > 0) {
    memory_us += bytes / (device.dram_gb_per_s * 1e3);
  }
  const Rate rate = compute_rate(device, dtype, exact_fp32);
  const double compute_us = rate.tflops > 0 ? flops / (rate.tflops * 1e6) : 0.0;
  const bool compute_bound = compute_us > memory_us;
  if (measured != nullptr) *measured = compute_bound ? rate.measured : curve_known;
  return compute_bound ? compute_us : memory_us;
}

}  // namespace autotune

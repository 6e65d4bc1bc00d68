// The fields of ArchLimits and DeviceSpec by name: one list each for reading them from YAML, for
// writing them into the built-in tables and for the JSON of `devices`.
#pragma once

#include <string_view>

#include "kernels/device_spec.h"

namespace autotune::io {

// visit(name, member, least value), for the limits that all compute capabilities share today...
template <class Limits, class Visit>
void visit_common_limits(Limits& limits, Visit&& visit) {
  visit("registers_per_sm", limits.registers_per_sm, 1);
  visit("registers_per_block", limits.registers_per_block, 1);
  visit("registers_per_thread", limits.registers_per_thread, 1);
  visit("register_unit_per_warp", limits.register_unit_per_warp, 1);
  visit("sub_partitions", limits.sub_partitions, 1);
  visit("threads_per_block", limits.threads_per_block, 1);
  visit("static_smem_per_block", limits.static_smem_per_block, 1);
  visit("named_barriers", limits.named_barriers, 1);
}

// ... and for those in which they differ.
template <class Limits, class Visit>
void visit_own_limits(Limits& limits, Visit&& visit) {
  visit("smem_per_sm", limits.smem_per_sm, 1);
  visit("smem_optin_per_block", limits.smem_optin_per_block, 1);
  visit("smem_reserved_per_block", limits.smem_reserved_per_block, 0);
  visit("smem_granularity", limits.smem_granularity, 1);
  visit("warps_per_sm", limits.warps_per_sm, 1);
  visit("threads_per_sm", limits.threads_per_sm, 1);
  visit("blocks_per_sm", limits.blocks_per_sm, 1);
  visit("cluster_portable", limits.cluster_portable, 1);
}

// visit(name, member) of what every GPU has...
template <class Device, class Visit>
void visit_counts(Device& device, Visit&& visit) {
  visit("sm_count", device.sm_count);
  visit("l2_bytes", device.l2_bytes);
  visit("dram_bytes", device.dram_bytes);
}

template <class Device, class Visit>
void visit_rates(Device& device, Visit&& visit) {
  visit("boost_mhz", device.boost_mhz);
  visit("dram_gb_per_s", device.dram_gb_per_s);
  visit("fp32_tflops", device.fp32_tflops);
}

// ... and of the peaks that it may lack (0).
template <class Device, class Visit>
void visit_tensor_peaks(Device& device, Visit&& visit) {
  visit("f16_bf16_tflops", device.f16_bf16_tflops);
  visit("fp8_tflops", device.fp8_tflops);
  visit("tf32_tflops", device.tf32_tflops);
}

// ... and of its SMs' groups, of which nobody may know (0).
template <class Device, class Visit>
void visit_optional_counts(Device& device, Visit&& visit) {
  visit("clustered_sms", device.clustered_sms);
  visit("gpc_sms", device.gpc_sms);
}

// visit(name, member, least value, most), for the performance model's coefficients.
template <class Model, class Visit>
void visit_model(Model& model, Visit&& visit) {
  for (const Coefficient& each : model_coefficients()) {
    visit(each.name, model.*each.member, each.lo, each.hi);
  }
}

struct FeatureName {
  std::string_view name;
  Feature feature;
};
inline constexpr FeatureName kFeatureNames[] = {
    {"cp_async", Feature::cp_async},     {"tma", Feature::tma},         {"wgmma", Feature::wgmma},
    {"setmaxnreg", Feature::setmaxnreg}, {"tcgen05", Feature::tcgen05},
};

}  // namespace autotune::io

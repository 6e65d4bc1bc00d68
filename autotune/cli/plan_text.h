// A plan as a person and as JSON see it.
#pragma once

#include <cstddef>
#include <string>

#include "autotune/io/json.h"
#include "kernels/device_spec.h"
#include "search/plan.h"

namespace autotune::cli {

inline constexpr std::size_t kRankedShown = 10;

// generated, what each rule rejected in the order of checking, survivors.
std::string funnel_text(const search::Plan& plan);

// "mma:..., predicted 210.5 us (652.9 TFLOP/s)".
std::string default_text(const search::Plan& plan);

// The first kRankedShown survivors with their resources.
std::string ranked_text(const search::Plan& plan, const DeviceSpec& device);

io::PlanRowJson plan_row(const search::Plan& plan, const DeviceSpec& device);

// Blocks of a predicted config on one SM.
int blocks_of(const Resources& resources, const DeviceSpec& device);

// Dynamic and static shared memory together.
std::int64_t smem_of(const Resources& resources);

}  // namespace autotune::cli

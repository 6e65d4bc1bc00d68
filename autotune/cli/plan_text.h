// A plan as a person and as JSON see it.
#pragma once

#include <cstddef>
#include <string>

#include "autotune/io/json.h"
#include "kernels/device_spec.h"
#include "search/plan.h"

namespace autotune::cli {

inline constexpr std::size_t kRankedShown = 10;

// generated, what each rule rejected in the order of checking, survivors: the numbers add up.
std::string funnel_text(const search::Plan& plan);

// "predicted 210.5 us (652.9 TFLOP/s)", and the config on a line of its own.
std::string default_text(const search::Plan& plan);

// The best kRankedShown with their resources, each compiled code once: in its best order of tiles.
// Otherwise one code in all its orders would fill the list. `ranked` of the JSON has the same rows.
std::string ranked_text(const search::Plan& plan, const DeviceSpec& device);

io::PlanRowJson plan_row(const search::Plan& plan, const DeviceSpec& device);

// Blocks of a predicted config on one SM.
int blocks_of(const Resources& resources, const DeviceSpec& device);

// Dynamic and static shared memory together.
std::int64_t smem_of(const Resources& resources);

}  // namespace autotune::cli

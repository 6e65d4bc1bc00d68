// Where a launch's pointers stand in its plan, so that a kernel that is launched again and again is
// planned once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/kernel.h"

namespace autotune {

// A pointer with so many bytes added.
struct PlacedPointer {
  std::uint64_t DevicePointers::*pointer = nullptr;
  std::uint64_t added = 0;
  std::size_t at = 0;  // see PlanPointers

  std::uint64_t of(const DevicePointers& pointers) const { return pointers.*pointer + added; }
};

struct PlanPointers {
  std::vector<PlacedPointer> words;  // of 8 bytes in the parameter; `at` in bytes
  std::vector<PlacedPointer> maps;   // addresses of tensor maps; `at` is a map's number
};

using PlanFor = std::function<LaunchPlan(const DevicePointers&)>;

// Found by asking for plans that differ in one pointer each, by some distance from `base`. nullopt
// where anything but sums with one pointer depends on these, which no kernel here may; nor may one
// on whether a pointer is null or how it is aligned, which is not tried.
std::optional<PlanPointers> pointers_of(const PlanFor& plan_for, const DevicePointers& base);

// Puts other pointers into the parameter of such a plan, but for its maps.
void put_words(const PlanPointers& places, const DevicePointers& pointers,
               std::span<std::byte> params);

}  // namespace autotune

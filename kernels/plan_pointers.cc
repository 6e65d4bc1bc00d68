#include "kernels/plan_pointers.h"

#include <array>
#include <cstring>

namespace autotune {
namespace {

constexpr std::array kPointers{&DevicePointers::a,  &DevicePointers::b,
                               &DevicePointers::c,  &DevicePointers::workspace,
                               &DevicePointers::up, &DevicePointers::down};
constexpr std::uint64_t kDistance = std::uint64_t{1} << 40;

std::uint64_t word(const LaunchPlan& plan, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, plan.params.data() + at, sizeof(value));
  return value;
}

}  // namespace

std::optional<PlanPointers> pointers_of(const PlanFor& plan_for, const DevicePointers& base) {
  const LaunchPlan plan = plan_for(base);
  PlanPointers found;
  DevicePointers all = base;
  std::uint64_t distance = 0;
  for (const auto pointer : kPointers) {
    distance += kDistance;
    all.*pointer += distance;
    DevicePointers moved = base;
    moved.*pointer += kDistance;
    const LaunchPlan other = plan_for(moved);
    const auto compare = [&](std::uint64_t before, std::uint64_t after, std::size_t at,
                             std::vector<PlacedPointer>& places) {
      if (after - before == kDistance) places.push_back({pointer, before - base.*pointer, at});
    };
    for (std::size_t at = 0; at < plan.params_size; at += sizeof(std::uint64_t)) {
      compare(word(plan, at), word(other, at), at, found.words);
    }
    for (std::size_t i = 0; i < plan.map_count; ++i) {
      compare(plan.maps[i].address, other.maps[i].address, i, found.maps);
    }
  }
  // Each by a distance of its own: what is no sum of one pointer comes out differently.
  LaunchPlan told = plan;
  put_words(found, all, told.params);
  for (const PlacedPointer& place : found.maps) told.maps[place.at].address = place.of(all);
  if (told != plan_for(all)) return std::nullopt;
  return found;
}

void put_words(const PlanPointers& places, const DevicePointers& pointers,
               std::span<std::byte> params) {
  for (const PlacedPointer& place : places.words) {
    const std::uint64_t value = place.of(pointers);
    std::memcpy(params.data() + place.at, &value, sizeof(value));
  }
}

}  // namespace autotune

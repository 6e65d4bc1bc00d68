// A family of two kernels with plain parameters, for tests of what any config can do.
#pragma once

#include <array>

#include "kernels/kernel.h"

namespace autotune::testing {

class FakeTwin : public HostTwin {
 public:
  FakeTwin(std::string_view name, std::span<const Parameter> parameters)
      : name_(name), parameters_(parameters) {}

  std::string_view name() const override { return name_; }
  std::string_view entry() const override { return "entry"; }
  DeviceSource source() const override { return {}; }
  std::span<const Parameter> parameters() const override { return parameters_; }
  std::span<const Constraint> constraints() const override { return {}; }
  std::string unsupported(const KernelTraits&, const DeviceSpec&) const override { return ""; }
  Resources resources(const Config&, const Problem&, const DeviceSpec&, int) const override {
    return {};
  }
  std::vector<Term> smem_terms(const Config&, const KernelTraits&) const override { return {}; }
  std::vector<Term> thread_terms(const Config&) const override { return {}; }
  std::vector<Term> register_terms(const Config&, const KernelTraits&) const override { return {}; }
  std::vector<Definition> definitions(const Config&, const KernelTraits&,
                                      const DeviceSpec&) const override {
    return {};
  }
  LaunchPlan launch_plan(const Config&, const Problem&, const DeviceSpec&, const DevicePointers&,
                         int) const override {
    return {};
  }
  Work work(const Config&, const Problem&, const DeviceSpec&) const override { return {}; }
  TileOrder tile_order(const Config&) const override { return {}; }
  void canonical(const Config&, const Problem&, std::span<TileOrder>) const override {}

 private:
  std::string_view name_;
  std::span<const Parameter> parameters_;
};

inline const Family& fake_family() {
  static constexpr std::array<Parameter, 3> kTiled = {{{"tile", 16, 256, 64, false, ""},
                                                       {"stages", 1, 8, 2, false, ""},
                                                       {"swizzle", 1, 16, 4, true, ""}}};
  static constexpr std::array<Parameter, 2> kPlain = {
      {{"tile", 8, 64, 32, false, ""}, {"unroll", 0, 8, 1, false, ""}}};
  static const FakeTwin tiled{"tiled", kTiled};
  static const FakeTwin plain{"plain", kPlain};
  static const std::array<const HostTwin*, 2> kernels = {&tiled, &plain};
  static const Family family{"fake", "for tests", kernels};
  return family;
}

// One of two stages, the first of which has but the kernel "tiled".
inline const Family& staged_family() {
  static const std::array<const HostTwin*, 1> kernels = {fake_family().kernels[0]};
  static const Family first{"first", "for tests", kernels};
  static const std::array<const Family*, 2> stages = {&first, &fake_family()};
  static const Family family{"staged", "for tests", {}, stages};
  return family;
}

}  // namespace autotune::testing

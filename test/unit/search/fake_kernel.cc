#include "fake_kernel.h"

#include <algorithm>
#include <stdexcept>

namespace autotune::search {
namespace {

enum Index {
  kSmem,
  kStaticSmem,
  kThreads,
  kMinBlocks,
  kMinRegisters,
  kDemand,
  kBarriers,
  kCluster,
  kGrid,
  kWorkspace,
  kOrder
};

constexpr std::int32_t kTop = 2147483647;
constexpr Parameter kParameters[] = {
    {"smem", 0, kTop, 1024, false, ""},
    {"static_smem", 0, kTop, 0, false, ""},
    {"threads", 1, 4096, 128, false, ""},
    {"min_blocks", 1, 64, 1, false, ""},
    {"min_registers", 1, 255, 24, false, ""},
    {"demand", 1, 4096, 64, false, ""},
    {"barriers", 0, 64, 1, false, ""},
    {"cluster", 1, 64, 1, false, ""},
    {"grid", 1, kTop, 4096, false, ""},
    {"workspace", 0, kTop, 0, false, ""},
    {"order", 0, 1, 0, true, ""},
};
constexpr Constraint kConstraints[] = {
    {"whole_warps", "threads must be a multiple of 32",
     [](const ParameterValuesArray& v, const KernelTraits&) { return v[kThreads] % 32 == 0; }},
};

class Fake final : public HostTwin {
 public:
  std::string_view name() const override { return "fake"; }
  std::string_view entry() const override { return "fake"; }
  DeviceSource source() const override { return {}; }
  std::span<const Parameter> parameters() const override { return kParameters; }
  std::span<const Constraint> constraints() const override { return kConstraints; }
  std::string unsupported(const KernelTraits& traits, const DeviceSpec&) const override {
    return traits.dtype == DType::fp32 ? "multiplies no fp32" : "";
  }
  Resources resources(const Config& config, const Problem&, const DeviceSpec&, int) const override {
    const ParameterValuesArray& v = config.values;
    Resources r;
    r.smem_bytes = v[kSmem];
    r.static_smem_bytes = v[kStaticSmem];
    r.threads = v[kThreads];
    r.min_blocks = v[kMinBlocks];
    r.min_registers = v[kMinRegisters];
    r.register_demand = v[kDemand];
    r.registers = std::min(v[kDemand], 128);
    r.barriers = v[kBarriers];
    r.cluster = v[kCluster];
    r.grid = std::int64_t{v[kGrid]} + v[kCluster] - 1;
    r.workspace_bytes = std::int64_t{v[kWorkspace]} << 20;
    return r;
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
  // Less work per step with more shared memory, so that a ranking has something to rank.
  Work work(const Config& config, const Problem& problem, const DeviceSpec&) const override {
    Work work;
    work.tiles_m = 16;
    work.tiles_n = 16;
    work.block_m = work.block_n = 256;
    work.block_k = 32;
    work.k_tiles = problem.k / 32;
    work.stages = 3;
    work.warps = config.values[kThreads] / 32;
    work.flops_per_k_tile = 1e7 - config.values[kSmem];
    return work;
  }
  TileOrder tile_order(const Config& config) const override {
    return {config.values[kOrder] != 0, 1};
  }
  void canonical(const Config&, const Problem&, std::span<TileOrder>) const override {}
};

const Fake kFake;
const HostTwin* const kKernels[] = {&kFake};
const Family kFamily{"fake", "nothing", kKernels};

std::size_t index_of(std::string_view name) {
  for (std::size_t p = 0; p < std::size(kParameters); ++p) {
    if (kParameters[p].name == name) return p;
  }
  throw std::invalid_argument(std::string(name));
}

}  // namespace

const Family& fake_family() { return kFamily; }
const HostTwin& fake_kernel() { return kFake; }

Config fake_config(std::initializer_list<std::pair<std::string_view, std::int32_t>> changes) {
  Config config{&kFake, {}};
  for (std::size_t p = 0; p < std::size(kParameters); ++p) {
    config.values[p] = kParameters[p].fallback;
  }
  for (const auto& [name, value] : changes) config.values[index_of(name)] = value;
  return config;
}

Space fake_space(
    std::initializer_list<std::pair<std::string_view, std::vector<std::int32_t>>> values) {
  Space space{"fake", {{"fake", {}}}, "test", false};
  for (const Parameter& parameter : kParameters) {
    space.kernels[0].parameters.push_back({std::string(parameter.name), {parameter.fallback}});
  }
  for (const auto& [name, list] : values) {
    space.kernels[0].parameters[index_of(name)].values = list;
  }
  return space;
}

Problem fake_problem() {
  Problem problem;
  problem.m = problem.n = problem.k = 4096;
  problem = *checked(problem);
  problem.family = "fake";
  return problem;
}

}  // namespace autotune::search

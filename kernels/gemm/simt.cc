// Host twin of simt.cuh: exact fp32 on the FFMA units.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_twin.h"

namespace autotune::embedded {
extern const DeviceSource gemm_simt_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kThreadM, kThreadN, kMinBlocks };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 128, false, "rows of C per block"},
    {"block_n", 1, 4096, 128, false, "columns of C per block"},
    {"block_k", 1, 1024, 16, false, "depth of one pipeline stage"},
    {"stages", 2, 64, 3, false, "k tiles in flight"},
    {"thread_m", 1, 64, 8, false, "rows of C per thread"},
    {"thread_n", 1, 64, 8, false, "columns of C per thread"},
    {"min_blocks", 1, 8, 1, false, "blocks per SM that registers must leave room for"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

std::int32_t threads_m(const Values& v) { return v[kBlockM] / v[kThreadM]; }
std::int32_t threads_n(const Values& v) { return v[kBlockN] / v[kThreadN]; }
std::int32_t threads_of(const Values& v) { return threads_m(v) * threads_n(v); }
std::int32_t lanes_n(const Values& v) { return std::min(threads_n(v), 8); }
std::int32_t accumulators(const Values& v, const KernelTraits& t) {
  return v[kThreadM] * v[kThreadN] * weights(t);
}

// Copies side by side in a line of an operand's tile.
std::int32_t copies_across(bool k_major, std::int32_t extent, int align, const Values& v) {
  if (k_major) return v[kBlockK];
  return align == 16 ? extent / 4 : extent;
}
bool tiles_lines(std::int32_t across, const Values& v) {
  const std::int32_t threads = threads_of(v);
  return across > 0 && threads > 0 && (threads % across == 0 || across % threads == 0);
}
bool vectors(std::int32_t block, std::int32_t thread) {
  return block % thread == 0 && block % 4 == 0 && (thread < 4 || thread % 4 == 0);
}

constexpr Constraint kConstraints[] = {
    {"thread_tile_m",
     "block_m must be a multiple of 4 and of thread_m; thread_m below 4 or whole 4s",
     [](const Values& v, const KernelTraits&) { return vectors(v[kBlockM], v[kThreadM]); }},
    {"thread_tile_n",
     "block_n must be a multiple of 4 and of thread_n; thread_n below 4 or whole 4s",
     [](const Values& v, const KernelTraits&) { return vectors(v[kBlockN], v[kThreadN]); }},
    {"warps_tile_block", "whole warps of (32 / lanes) x lanes threads must tile the block",
     [](const Values& v, const KernelTraits&) {
       const std::int32_t lanes = lanes_n(v);
       return lanes > 0 && 32 % lanes == 0 && threads_n(v) % lanes == 0 &&
              threads_m(v) % (32 / lanes) == 0 && threads_m(v) > 0;
     }},
    {"even_block_k", "block_k must be even: two register buffers alternate",
     [](const Values& v, const KernelTraits&) { return v[kBlockK] % 2 == 0; }},
    {"threads_cover_a",
     "the threads must divide or be a multiple of the copies in a line of A's tile",
     [](const Values& v, const KernelTraits& t) {
       return tiles_lines(copies_across(a_is_k_major(t.layout), v[kBlockM], t.align_a, v), v);
     }},
    {"threads_cover_b",
     "the threads must divide or be a multiple of the copies in a line of B's tile",
     [](const Values& v, const KernelTraits& t) {
       return tiles_lines(copies_across(b_is_k_major(t.layout), v[kBlockN], t.align_b, v), v);
     }},
    {"accumulators",
     "a thread's tiles must leave registers: thread_m x thread_n, twice where gated, at most 128",
     [](const Values& v, const KernelTraits& t) { return accumulators(v, t) <= 128; }},
};

std::int64_t a_bytes(const Values& v) { return std::int64_t{v[kBlockM]} * v[kBlockK] * 4; }
std::int64_t b_bytes(const Values& v, const KernelTraits& t) {
  return std::int64_t{weights(t)} * v[kBlockN] * v[kBlockK] * 4;
}
std::int64_t ring_of(const Values& v, const KernelTraits& t) {
  return v[kStages] * (a_bytes(v) + b_bytes(v, t));
}

// Fitted to ptxas 13.0 on 150 random configs for sm_90a, as in mma.cc (15 of 18 spills foreseen, no
// config rejected that does not spill).
constexpr std::int32_t kBaseRegisters = 45;
constexpr std::int32_t kBaseLive = 24;

std::int32_t fragment_registers(const Values& v, const KernelTraits& t) {
  return v[kThreadM] + v[kThreadN] * weights(t);
}
std::int32_t estimate(const Values& v, const KernelTraits& t) {
  return accumulators(v, t) + 2 * fragment_registers(v, t) + kBaseRegisters;
}
std::int32_t live(const Values& v, const KernelTraits& t) {
  return accumulators(v, t) + fragment_registers(v, t) * 4 / 5 + kBaseLive;
}

class Simt final : public GemmTwin {
 public:
  std::string_view name() const override { return "simt"; }
  std::string_view entry() const override { return "gemm_simt"; }
  DeviceSource source() const override { return embedded::gemm_simt_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec&) const override {
    return traits.dtype == DType::fp32 ? "" : "multiplies fp32 only";
  }

  std::int64_t ring_bytes(const Config& config, const KernelTraits& traits) const override {
    return ring_of(config.values, traits);
  }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    return {{"pipeline",
             fmt::format("{} stages x ({} + {}{}) x {} x 4 bytes", v[kStages], v[kBlockM],
                         t.gated ? "2 x " : "", v[kBlockN], v[kBlockK]),
             ring_of(v, t)}};
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const Values& v = config.values;
    return {{"threads",
             fmt::format("({} / {}) x ({} / {})", v[kBlockM], v[kThreadM], v[kBlockN], v[kThreadN]),
             threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    const char* twice = t.gated ? "2 x " : "";
    return {
        {"accumulators", fmt::format("{}{} x {}", twice, v[kThreadM], v[kThreadN]),
         accumulators(v, t)},
        {"fragments", fmt::format("2 buffers x ({} + {}{})", v[kThreadM], twice, v[kThreadN]),
         2 * fragment_registers(v, t)},
        {"addresses and loop", "fitted", kBaseRegisters},
        {"estimate", "before the launch cap", estimate(v, t)},
        {"live at once", "spills where the cap is below", live(v, t)},
    };
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    return {ring_of(v, t), threads_of(v), v[kMinBlocks], estimate(v, t), live(v, t)};
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& t) const override {
    const Values& v = config.values;
    return {{"SMEM_A_BYTES", std::to_string(a_bytes(v))},
            {"SMEM_B_OFFSET", std::to_string(a_bytes(v))},
            {"SMEM_STAGE_BYTES", std::to_string(a_bytes(v) + b_bytes(v, t))}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec&,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::ffma;
    work.stages = v[kStages];
    work.warps = threads_of(v) / 32;
    // A warp reads its rows once per lane row and column; equal addresses are one access.
    const double lanes = lanes_n(v);
    const double warp_rows = 32 / lanes * v[kThreadM] + lanes * v[kThreadN] * weights(traits);
    work.smem_bytes_per_k_tile =
        work.warps * warp_rows * v[kBlockK] * 4.0 + work.load_bytes_per_k_tile;
    const bool wide_a = !a_is_k_major(traits.layout) && traits.align_a == 16;
    const bool wide_b = !b_is_k_major(traits.layout) && traits.align_b == 16;
    work.load_instructions_per_k_tile =
        (v[kBlockM] / (wide_a ? 4.0 : 1.0) + weights(traits) * v[kBlockN] / (wide_b ? 4.0 : 1.0)) *
        v[kBlockK] / threads_of(v);
  }
};

const Simt kSimt;

}  // namespace

const HostTwin& simt_kernel = kSimt;

}  // namespace autotune::gemm

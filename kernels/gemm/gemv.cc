// Host twin of gemv.cuh: a few rows against weights that are read once.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_twin.h"

namespace autotune::embedded {
extern const std::string_view gemm_gemv_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kWarpsN, kWarpsK, kMinBlocks };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 16, 8, false, "most rows of C that are served"},
    {"block_n", 8, 1024, 8, false, "columns of C per block"},
    {"block_k", 16, 8192, 512, false, "depth of one pass of all warps"},
    {"stages", 1, 16, 4, false, "passes in flight, in registers"},
    {"warps_n", 1, 32, 1, false, "warps along n"},
    {"warps_k", 1, 32, 8, false, "warps along k, whose sums meet at the end"},
    {"min_blocks", 1, 16, 1, false, "blocks per SM that registers must leave room for"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

std::int32_t element(const KernelTraits& t) { return storage_bytes(t.dtype); }
bool on_tensor_cores(const KernelTraits& t) { return t.dtype != DType::fp32; }
std::int32_t threads_of(const Values& v) { return 32 * v[kWarpsN] * v[kWarpsK]; }
std::int32_t warp_n(const Values& v) { return v[kBlockN] / v[kWarpsN]; }
std::int32_t tiles(const Values& v) { return warp_n(v) / 8; }
// Depth of one step of a warp: 64 bytes of k, whatever the element.
std::int32_t step_k(const KernelTraits& t) { return 64 / element(t); }
std::int32_t depth(const Values& v, const KernelTraits& t) {
  return v[kBlockK] / (v[kWarpsK] * step_k(t));
}

// Registers of a step's chunks: 4 for each tile of 8 columns, and for 8 rows of A, which FFMA reads
// when it multiplies. Elements that are loaded one by one have registers of their own till then.
std::int32_t chunk_registers(const Values& v, const KernelTraits& t) {
  const std::int32_t rows = v[kBlockM] > 8 ? 2 : 1;
  const std::int32_t of_a = on_tensor_cores(t) ? rows * (t.align_a == 2 ? 8 : 4) : 0;
  return of_a + tiles(v) * (t.align_b == 2 ? 8 : 4);
}
std::int32_t in_flight(const Values& v, const KernelTraits& t) {
  return v[kStages] * depth(v, t) * chunk_registers(v, t);
}
std::int32_t accumulators(const Values& v, const KernelTraits& t) {
  return tiles(v) * (on_tensor_cores(t) ? 4 : v[kBlockM]);
}

constexpr Constraint kConstraints[] = {
    {"rows", "block_m must be 8 or 16 on tensor cores, a power of two for fp32",
     [](const Values& v, const KernelTraits& t) {
       const bool power = (v[kBlockM] & (v[kBlockM] - 1)) == 0;
       return power && (v[kBlockM] >= 8 || !on_tensor_cores(t));
     }},
    {"warp_columns", "block_n must be a multiple of 8 x warps_n",
     [](const Values& v, const KernelTraits&) { return v[kBlockN] % (8 * v[kWarpsN]) == 0; }},
    {"row_pieces", "where B is contiguous along n, a warp's columns must be 32, 64 or 128 bytes",
     [](const Values& v, const KernelTraits& t) {
       const std::int32_t bytes = warp_n(v) * element(t);
       return b_is_k_major(t.layout) || bytes == 32 || bytes == 64 || bytes == 128;
     }},
    {"k_steps", "block_k must be a multiple of 64 bytes x warps_k",
     [](const Values& v, const KernelTraits& t) {
       return depth(v, t) > 0 && v[kBlockK] % (v[kWarpsK] * step_k(t)) == 0;
     }},
    {"in_flight", "a thread's chunks in flight and its sums must leave registers: at most 224",
     [](const Values& v, const KernelTraits& t) {
       return in_flight(v, t) + accumulators(v, t) <= 224;
     }},
};

// Shared memory: the sums of each place along k, [block_m][block_n], rows of an odd number of eight
// words.
std::int64_t row_bytes(const Values& v) {
  return (v[kBlockN] + (v[kBlockN] % 16 == 0 ? 8 : 0)) * std::int64_t{4};
}
std::int64_t slice_bytes(const Values& v) { return v[kBlockM] * row_bytes(v); }
std::int64_t smem_bytes(const Values& v) { return v[kWarpsK] * slice_bytes(v); }

// Fitted to ptxas 13.0 on 170 random configs for sm_90a, as in mma.cc: every config that keeps less
// than kBaseLive spills, some that keep up to 20 more spill a little.
constexpr std::int32_t kBaseRegisters = 28;
constexpr std::int32_t kBaseLive = 20;

// A pointer to each column, or to the rows of k that are loaded next.
std::int32_t address_registers(const Values& v, const KernelTraits& t) {
  return b_is_k_major(t.layout) ? 2 * std::min(tiles(v), 8) : 16;
}
std::int32_t estimate(const Values& v, const KernelTraits& t) {
  return in_flight(v, t) + accumulators(v, t) + address_registers(v, t) + kBaseRegisters;
}
std::int32_t live(const Values& v, const KernelTraits& t) {
  return in_flight(v, t) + accumulators(v, t) + kBaseLive;
}

class Gemv final : public GemmTwin {
 public:
  std::string_view name() const override { return "gemv"; }
  std::string_view entry() const override { return "gemm_gemv"; }
  std::string_view source() const override { return embedded::gemm_gemv_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (!a_is_k_major(traits.layout)) return "reads A along k: layouts tn and tt only";
    return on_tensor_cores(traits) ? no_mma_sync(traits.dtype, device) : "";
  }

  std::int64_t most_rows() const override { return kParameters[kBlockM].hi; }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits&) const override {
    const Values& v = config.values;
    return {{"sums of the warps along k",
             fmt::format("{} warps x {} x {} x 4 bytes", v[kWarpsK], v[kBlockM], row_bytes(v) / 4),
             smem_bytes(v)}};
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const Values& v = config.values;
    return {{"warps", fmt::format("{} x {} warps x 32", v[kWarpsN], v[kWarpsK]), threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config,
                                   const KernelTraits& traits) const override {
    const Values& v = config.values;
    return {
        {"chunks in flight",
         fmt::format("{} stages x {} x {}", v[kStages], depth(v, traits),
                     chunk_registers(v, traits)),
         in_flight(v, traits)},
        {"accumulators", fmt::format("{} tiles of 8 columns", tiles(v)), accumulators(v, traits)},
        {"addresses", "fitted", address_registers(v, traits)},
        {"loop", "fitted", kBaseRegisters},
        {"estimate", "before the launch cap", estimate(v, traits)},
        {"live at once", "spills where the cap is below", live(v, traits)},
    };
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    BlockNeeds block{smem_bytes(v), threads_of(v), v[kMinBlocks], estimate(v, traits),
                     live(v, traits)};
    block.most_rows = v[kBlockM];
    return block;
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits&) const override {
    const Values& v = config.values;
    return {{"SMEM_ROW_BYTES", std::to_string(row_bytes(v))},
            {"SMEM_SLICE_BYTES", std::to_string(slice_bytes(v))}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                 Work& work) const override {
    const Values& v = config.values;
    work.stages = v[kStages] + 1;  // what is multiplied is asked for anew at once
    work.warps = threads_of(v) / 32;
    if (on_tensor_cores(traits)) {
      work.unit = Work::Unit::tensor;
      work.unit_rate = mma_sync_rate(device);
      work.flops_per_k_tile *= 16.0 / v[kBlockM];  // rows of the instruction
    } else {
      work.unit = Work::Unit::ffma;
    }
    // Through L1; A once for each warp along n.
    const double k_bytes = static_cast<double>(v[kBlockK]) * element(traits);
    work.smem_bytes_per_k_tile = (v[kBlockN] + v[kBlockM] * v[kWarpsN]) * k_bytes;
    const double row_piece = b_is_k_major(traits.layout) ? 16 : tiles(v) * element(traits);
    const double pieces_b = v[kBlockN] * k_bytes / std::min<double>(row_piece, traits.align_b);
    // The lanes of a warp share A's rows out, or each reads all of them.
    const double readers = on_tensor_cores(traits) ? 1 : 8;
    const double pieces_a = readers * v[kBlockM] * v[kWarpsN] * k_bytes / traits.align_a;
    work.load_instructions_per_k_tile = (pieces_a + pieces_b) / threads_of(v);
  }
};

const Gemv kGemv;

}  // namespace

const HostTwin& gemv_kernel = kGemv;

}  // namespace autotune::gemm

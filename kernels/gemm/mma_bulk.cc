// Host twin of mma_bulk.cuh: tensor cores through mma.sync on rows that begin anywhere, brought by
// the bulk copy engine.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_twin.h"

namespace autotune::embedded {
extern const std::string_view gemm_mma_bulk_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kWarpsM, kWarpsN, kSplitK };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 64, false, "rows of C per block"},
    {"block_n", 1, 4096, 64, false, "columns of C per block"},
    {"block_k", 1, 1024, 128, false, "depth of one pipeline stage"},
    {"stages", 1, 64, 2, false, "k tiles in flight"},
    {"warps_m", 1, 64, 2, false, "warps along m"},
    {"warps_n", 1, 64, 2, false, "warps along n"},
    {"split_k", 1, 8, 1, false, "parts of k in the blocks of a cluster, added up by them"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

constexpr std::int64_t kLine = 128;  // bytes

std::int64_t element(const KernelTraits& traits) { return storage_bytes(traits.dtype); }
std::int32_t threads_of(const Values& v) { return 32 * v[kWarpsM] * v[kWarpsN]; }
std::int64_t warp_m(const Values& v) { return v[kBlockM] / v[kWarpsM]; }
std::int64_t warp_n(const Values& v) { return v[kBlockN] / v[kWarpsN]; }
std::int64_t accumulators(const Values& v) { return warp_m(v) * warp_n(v) / 32; }
std::int64_t row_bytes(const Values& v, const KernelTraits& t) { return v[kBlockK] * element(t); }

constexpr Constraint kConstraints[] = {
    {"warp_tile_m", "block_m must be a multiple of 16 x warps_m",
     [](const Values& v, const KernelTraits&) { return v[kBlockM] % (16 * v[kWarpsM]) == 0; },
     reads_of({kBlockM, kWarpsM})},
    {"warp_tile_n", "block_n must be a multiple of 8 x warps_n",
     [](const Values& v, const KernelTraits&) { return v[kBlockN] % (8 * v[kWarpsN]) == 0; },
     reads_of({kBlockN, kWarpsN})},
    {"lines", "block_k must be a multiple of 128 bytes",
     [](const Values& v, const KernelTraits& t) { return row_bytes(v, t) % kLine == 0; },
     reads_of({kBlockK})},
    {"shares", "split_k must divide block_m: a part stores as many rows as any other",
     [](const Values& v, const KernelTraits&) { return v[kBlockM] % v[kSplitK] == 0; },
     reads_of({kBlockM, kSplitK})},
    {"copies", "a thread copies at most four rows of a stage: block_m + block_n / threads",
     [](const Values& v, const KernelTraits&) {
       return v[kBlockM] + v[kBlockN] <= 4 * threads_of(v);
     },
     reads_of({kBlockM, kBlockN, kWarpsM, kWarpsN})},
    {"accumulators", "a warp's tiles must leave registers: warp_m x warp_n / 32, at most 128",
     [](const Values& v, const KernelTraits&) { return accumulators(v) <= 128; },
     reads_of({kBlockM, kBlockN, kWarpsM, kWarpsN})},
};

// Shared memory: the ring, whose bytes later hold the tile's sums; what the other parts give; a
// barrier per stage, and one for what is given.
struct Layout {
  std::int64_t slot_bytes;
  std::int64_t stage_bytes;
  std::int64_t sums_bytes;
  std::int64_t ring_bytes;
  std::int64_t given_bytes;
  std::int64_t barriers;
  std::int64_t total() const { return ring_bytes + given_bytes + 8 * barriers; }
};

Layout layout_of(const Values& v, const KernelTraits& t) {
  const std::int64_t parts = v[kSplitK];
  Layout l{};
  l.slot_bytes = row_bytes(v, t) + kLine;
  l.stage_bytes = (v[kBlockM] + v[kBlockN]) * l.slot_bytes;
  l.sums_bytes = std::int64_t{v[kBlockM]} * (v[kBlockN] + 4) * 4;
  l.ring_bytes = std::max(v[kStages] * l.stage_bytes, l.sums_bytes);
  l.given_bytes = (parts - 1) * (v[kBlockM] / parts) * v[kBlockN] * 4;
  l.barriers = v[kStages] + (parts > 1 ? 1 : 0);
  return l;
}

// Of two steps of k, which are read together: 4 per 16 rows of A, 2 per 8 columns of B.
std::int64_t fragments(const Values& v) { return 2 * (warp_m(v) / 16 * 4 + warp_n(v) / 8 * 2); }
// Where the rows of a lane's fragments begin, and the rows that a thread copies.
std::int64_t addresses(const Values& v) {
  return warp_m(v) / 8 + warp_n(v) / 8 +
         4 * ceil_div(v[kBlockM] + v[kBlockN], threads_of(v));
}

constexpr std::int32_t kBaseRegisters = 40;
constexpr std::int32_t kBaseLive = 24;

std::int32_t estimate(const Values& v) {
  return static_cast<std::int32_t>(accumulators(v) + fragments(v) + addresses(v)) + kBaseRegisters;
}
std::int32_t live(const Values& v) {
  return static_cast<std::int32_t>(accumulators(v) + fragments(v) / 2 + addresses(v)) + kBaseLive;
}

class MmaBulk final : public GemmTwin {
 public:
  std::string_view name() const override { return "mma_bulk"; }
  std::string_view entry() const override { return "gemm_mma_bulk"; }
  std::string_view source() const override { return embedded::gemm_mma_bulk_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (!device.limits.has(Feature::tma)) {
      return fmt::format("{} has no bulk copies", device.limits.arch);
    }
    if (traits.dtype == DType::fp32) return "multiplies bf16, fp16 and tf32 only";
    if (traits.gated) return "does not gate";
    if (!a_is_k_major(traits.layout) || !b_is_k_major(traits.layout)) {
      return "copies rows along k only (layout tn)";
    }
    return no_mma_sync(traits.dtype, device);
  }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const Layout l = layout_of(v, traits);
    std::vector<Term> terms = {
        {"pipeline",
         fmt::format("{} stages x ({} + {}) x ({} x {} + 128) bytes", v[kStages], v[kBlockM],
                     v[kBlockN], v[kBlockK], element(traits)),
         v[kStages] * l.stage_bytes},
        {"sums (same bytes)", fmt::format("{} x ({} + 4) x 4 bytes", v[kBlockM], v[kBlockN]),
         l.sums_bytes},
    };
    if (l.given_bytes > 0) {
      terms.push_back({"other parts",
                       fmt::format("{} x {} rows x {} columns x 4 bytes", v[kSplitK] - 1,
                                   v[kBlockM] / v[kSplitK], v[kBlockN]),
                       l.given_bytes});
    }
    terms.push_back({"barriers", fmt::format("{} x 8 bytes", l.barriers), 8 * l.barriers});
    terms.push_back({"total", "of the first two the larger", l.total()});
    return terms;
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const Values& v = config.values;
    return {{"warps", fmt::format("{} x {} warps x 32", v[kWarpsM], v[kWarpsN]), threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config, const KernelTraits&) const override {
    const Values& v = config.values;
    return {
        {"accumulators", fmt::format("{} x {} / 32", warp_m(v), warp_n(v)), accumulators(v)},
        {"fragments", fmt::format("2 steps x ({} / 16 x 4 + {} / 8 x 2)", warp_m(v), warp_n(v)),
         fragments(v)},
        {"rows", "where a lane's begin, and those it copies", addresses(v)},
        {"addresses and loop", "fitted", kBaseRegisters},
        {"estimate", "before the launch cap", estimate(v)},
        {"live at once", "spills where the cap is below", live(v)},
    };
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    return {layout_of(v, traits).total(), threads_of(v), 1, estimate(v), live(v)};
  }

  SplitShape split(const Config& config, const Problem&, std::int64_t) const override {
    return {config.values[kSplitK]};
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Layout l = layout_of(config.values, traits);
    return {{"SMEM_SLOT_BYTES", std::to_string(l.slot_bytes)},
            {"SMEM_RING_BYTES", std::to_string(l.ring_bytes)}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::tensor;
    work.unit_rate = mma_sync_rate(device);
    work.stages = v[kStages];
    work.warps = v[kWarpsM] * v[kWarpsN];
    const double k_bytes = static_cast<double>(row_bytes(v, traits));
    const double warp_reads = static_cast<double>(warp_m(v) + warp_n(v)) * k_bytes;
    work.smem_bytes_per_k_tile = work.warps * warp_reads + work.load_bytes_per_k_tile;
    work.load_instructions_per_k_tile =
        static_cast<double>(v[kBlockM] + v[kBlockN]) / threads_of(v);
  }
};

const MmaBulk kMmaBulk;

}  // namespace

const HostTwin& mma_bulk_kernel = kMmaBulk;

}  // namespace autotune::gemm

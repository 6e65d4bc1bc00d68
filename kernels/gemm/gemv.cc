// Host twin of gemv.cuh: a few rows against weights that are read once.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_twin.h"

namespace autotune::embedded {
extern const DeviceSource gemm_gemv_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kWarpsN, kWarpsK, kLanesK, kMinBlocks };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 16, 8, false, "rows of C per block; more are served by 16 on tensor cores only"},
    {"block_n", 1, 1024, 8, false, "columns of C per block"},
    {"block_k", 16, 8192, 512, false, "depth of one pass of all warps"},
    {"stages", 1, 16, 4, false, "passes in flight, in registers"},
    {"warps_n", 1, 32, 1, false, "warps along n"},
    {"warps_k", 1, 32, 8, false, "warps along k, whose sums meet at the end"},
    {"lanes_k", 1, 32, 4, false,
     "lanes of a warp that share a column: with 4, tensor cores multiply, else FFMA"},
    {"min_blocks", 1, 16, 1, false, "blocks per SM that registers must leave room for"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

std::int32_t element(const KernelTraits& t) { return storage_bytes(t.dtype); }
// Tensor cores sum over the lanes of a quad.
bool on_tensor_cores(const Values& v, const KernelTraits& t) {
  return v[kLanesK] == 4 && t.dtype != DType::fp32;
}
// Rows that a matrix instruction holds. Of more, blocks take so many each, up to where tiles of
// more rows, which read the weights less often, serve better.
constexpr std::int32_t kInstructionRows = 16;
constexpr std::int64_t kMostRows = 128;
bool several_tiles_m(const Values& v, const KernelTraits& t) {
  return on_tensor_cores(v, t) && v[kBlockM] == kInstructionRows;
}
std::int32_t threads_of(const Values& v) { return 32 * v[kWarpsN] * v[kWarpsK]; }
std::int32_t warp_n(const Values& v) { return v[kBlockN] / v[kWarpsN]; }
std::int32_t tile_columns(const Values& v) { return 32 / v[kLanesK]; }
std::int32_t tiles(const Values& v) { return warp_n(v) / tile_columns(v); }
// Depth of one step of a warp: 16 bytes of each lane along k, whatever the element.
std::int32_t step_k(const Values& v, const KernelTraits& t) { return 16 * v[kLanesK] / element(t); }
std::int32_t depth(const Values& v, const KernelTraits& t) {
  return v[kBlockK] / (v[kWarpsK] * step_k(v, t));
}

// Bytes of a thread's columns in a row of k, where B is contiguous along n.
std::int32_t thread_row_bytes(const Values& v, const KernelTraits& t) {
  return tiles(v) * element(t);
}
// Bytes of the pieces that B and A are read in.
std::int32_t piece_b(const Values& v, const KernelTraits& t) {
  return b_is_k_major(t.layout) ? std::min(t.align_a, t.align_b)
                                : std::min(t.align_b, thread_row_bytes(v, t));
}
std::int32_t piece_a(const Values& v, const KernelTraits& t) {
  return b_is_k_major(t.layout) ? piece_b(v, t) : t.align_a;
}

// Registers of a step's chunks: 4 for each tile of columns, and for 8 rows of A, unless these are
// read when they are multiplied; `of_halves` where elements of 16 bits are loaded one by one.
std::int32_t chunk_registers(const Values& v, const KernelTraits& t, std::int32_t of_halves) {
  const std::int32_t rows = v[kBlockM] > 8 ? 2 : 1;
  const std::int32_t of_a = on_tensor_cores(v, t) ? rows * (piece_a(v, t) == 2 ? of_halves : 4) : 0;
  return of_a + tiles(v) * (piece_b(v, t) == 2 ? of_halves : 4);
}
// A register for each, and so it stays where FFMA multiplies; ptxas 13.0 takes nearly three until
// two are put together (200 random configs).
constexpr std::int32_t kHalves = 8;
std::int32_t live_halves(const Values& v, const KernelTraits& t) {
  return on_tensor_cores(v, t) ? 22 : kHalves;
}

std::int32_t in_flight(const Values& v, const KernelTraits& t, std::int32_t of_halves) {
  return v[kStages] * depth(v, t) * chunk_registers(v, t, of_halves);
}
std::int32_t accumulators(const Values& v, const KernelTraits& t) {
  return tiles(v) * (on_tensor_cores(v, t) ? 4 : v[kBlockM]);
}

constexpr Constraint kConstraints[] = {
    {"rows", "block_m must be a power of two, and 8 or 16 on tensor cores",
     [](const Values& v, const KernelTraits& t) {
       const bool power = (v[kBlockM] & (v[kBlockM] - 1)) == 0;
       return power && (v[kBlockM] >= 8 || !on_tensor_cores(v, t));
     }},
    {"lanes",
     "lanes_k must be a power of two, 4 or more where B is contiguous along k, and no more than 4 "
     "where it is along n",
     [](const Values& v, const KernelTraits& t) {
       const bool power = (v[kLanesK] & (v[kLanesK] - 1)) == 0;
       return power && (b_is_k_major(t.layout) ? v[kLanesK] >= 4 : v[kLanesK] <= 4);
     }},
    {"warp_columns", "block_n must be a multiple of 32 / lanes_k x warps_n",
     [](const Values& v, const KernelTraits&) {
       return v[kBlockN] % (tile_columns(v) * v[kWarpsN]) == 0;
     }},
    {"row_pieces",
     "where B is contiguous along n, a thread's columns (block_n x lanes_k / 32 / warps_n) must be "
     "2, 4, 8 or 16 bytes, 4 at least on tensor cores",
     [](const Values& v, const KernelTraits& t) {
       if (b_is_k_major(t.layout)) return true;
       const std::int32_t bytes = thread_row_bytes(v, t);
       return bytes <= 16 && (bytes & (bytes - 1)) == 0 && (bytes >= 4 || !on_tensor_cores(v, t));
     }},
    {"k_steps", "block_k must be a multiple of 16 bytes x lanes_k x warps_k",
     [](const Values& v, const KernelTraits& t) {
       return depth(v, t) > 0 && v[kBlockK] % (v[kWarpsK] * step_k(v, t)) == 0;
     }},
    {"in_flight", "a thread's chunks in flight and its sums must leave registers: at most 224",
     [](const Values& v, const KernelTraits& t) {
       return in_flight(v, t, kHalves) + accumulators(v, t) <= 224;
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

// A pointer to each column, to the first of those that whole warps read, or to the rows of k that
// are loaded next.
std::int32_t address_registers(const Values& v, const KernelTraits& t) {
  if (v[kLanesK] == 32) return 2;
  return b_is_k_major(t.layout) ? 2 * std::min(tiles(v), 8) : 16;
}
// By FFMA: A's chunks of a step, less what places of columns take.
std::int32_t row_registers(const Values& v, const KernelTraits& t) {
  return on_tensor_cores(v, t) ? 0 : 4 * v[kBlockM] - 2;
}
// Up to four lanes along k spill, of what those take, only half (1,100 random configs: 133 of 227
// that spill are below, and 7 others).
std::int32_t live_row_registers(const Values& v, const KernelTraits& t) {
  const bool few_lanes = !on_tensor_cores(v, t) && v[kLanesK] <= 4;
  return few_lanes ? 2 * v[kBlockM] + 4 : row_registers(v, t);
}
// Weights that ptxas converts ahead where it is free to.
std::int32_t converted(const Values& v, const KernelTraits& t) {
  return v[kLanesK] > 4 && element(t) == 2 ? 8 * tiles(v) : 0;
}
std::int32_t estimate(const Values& v, const KernelTraits& t) {
  return in_flight(v, t, live_halves(v, t)) + accumulators(v, t) + address_registers(v, t) +
         row_registers(v, t) + converted(v, t) + kBaseRegisters;
}
std::int32_t live(const Values& v, const KernelTraits& t) {
  return in_flight(v, t, live_halves(v, t)) + accumulators(v, t) + live_row_registers(v, t) +
         kBaseLive;
}

// What a load of a warp takes of one of 16 bytes per lane, which is four lines of 128: those that
// it touches, so many runs of so many bytes.
double copy_share(double runs, double run_bytes) {
  return std::min(1.0, runs * std::max(1.0, run_bytes / 128) / 4);
}

class Gemv final : public GemmTwin {
 public:
  std::string_view name() const override { return "gemv"; }
  std::string_view entry() const override { return "gemm_gemv"; }
  DeviceSource source() const override { return embedded::gemm_gemv_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (!a_is_k_major(traits.layout)) return "reads A along k: layouts tn and tt only";
    return traits.dtype != DType::fp32 ? no_mma_sync(traits.dtype, device) : "";
  }

  std::int64_t most_rows(const KernelTraits& traits) const override {
    return traits.dtype == DType::fp32 ? kParameters[kBlockM].hi : kMostRows;
  }

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
                     chunk_registers(v, traits, live_halves(v, traits))),
         in_flight(v, traits, live_halves(v, traits))},
        {"accumulators", fmt::format("{} tiles of {} columns", tiles(v), tile_columns(v)),
         accumulators(v, traits)},
        {"addresses", "fitted", address_registers(v, traits)},
        {"rows of A", "by FFMA: 4 x block_m - 2", row_registers(v, traits)},
        {"converted", "8 x tiles of 16-bit columns, where lanes_k is more than 4",
         converted(v, traits)},
        {"loop", "fitted", kBaseRegisters},
        {"estimate", "before the launch cap", estimate(v, traits)},
        {"live at once", "spills where the cap is below", live(v, traits)},
    };
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    return {smem_bytes(v), threads_of(v), v[kMinBlocks], estimate(v, traits), live(v, traits)};
  }

  std::int64_t served_rows(const Config& config, const Problem& problem) const override {
    return several_tiles_m(config.values, traits_of(problem)) ? kMostRows : config.values[kBlockM];
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Values& v = config.values;
    return {{"SEVERAL_TILES_M", several_tiles_m(v, traits) ? "1" : "0"},
            {"SMEM_ROW_BYTES", std::to_string(row_bytes(v))},
            {"SMEM_SLICE_BYTES", std::to_string(slice_bytes(v))}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                 Work& work) const override {
    const Values& v = config.values;
    work.stages = v[kStages] + 1;  // what is multiplied is asked for anew at once
    work.warps = threads_of(v) / 32;
    const bool tensor = on_tensor_cores(v, traits);
    if (tensor) {
      work.unit = Work::Unit::tensor;
      work.unit_rate = mma_sync_rate(device);
      work.flops_per_k_tile *= static_cast<double>(kInstructionRows) / v[kBlockM];
    } else {
      work.unit = Work::Unit::ffma;
      // Each step's piece of A is asked for when its turn has come.
      work.waits_per_k_tile = depth(v, traits);
      if (element(traits) == 2) {  // a weight is converted once, A for each of the columns
        work.flops_per_k_tile *= 1.0 + 1.0 / v[kBlockM] + 1.0 / std::max(1, tiles(v));
      }
    }
    // Through L1; A once for each warp along n.
    const double k_bytes = static_cast<double>(v[kBlockK]) * element(traits);
    work.smem_bytes_per_k_tile = (v[kBlockN] + v[kBlockM] * v[kWarpsN]) * k_bytes;
    const double lanes = v[kLanesK];
    const double columns = tile_columns(v);
    const double bytes_b = piece_b(v, traits);
    const double share_b = b_is_k_major(traits.layout) ? copy_share(columns, lanes * bytes_b)
                                                       : copy_share(lanes, columns * bytes_b);
    const double pieces_b = v[kBlockN] * k_bytes / bytes_b * share_b;
    // The lanes of a warp share A's rows out, or each group of them reads all, in the same places.
    const double bytes_a = piece_a(v, traits);
    double pieces_a = v[kBlockM] * v[kWarpsN] * k_bytes / bytes_a;
    if (!tensor) pieces_a *= columns * copy_share(1, lanes * bytes_a);
    work.load_instructions_per_k_tile = (pieces_a + pieces_b) / threads_of(v);
  }
};

const Gemv kGemv;

}  // namespace

const HostTwin& gemv_kernel = kGemv;

}  // namespace autotune::gemm

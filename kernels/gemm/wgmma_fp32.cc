// Host twin of wgmma_fp32.cuh: fp32 as three bf16 parts on Hopper's warpgroup matrix instructions.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/hopper_twin.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/gemm/wgmma_fp32_args.h"

namespace autotune::embedded {
extern const DeviceSource gemm_wgmma_fp32_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kCutStages, kChains, kCutters };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 128, false, "rows of C per block: 64 for each warpgroup that multiplies"},
    {"block_n", 1, 4096, 128, false, "columns of C per block"},
    {"block_k", 1, 1024, 32, false, "depth of one pipeline stage"},
    {"stages", 2, 64, 4, false, "k tiles in flight"},
    {"cut_stages", 2, 64, 2, false, "k tiles of B that are held in parts"},
    {"chains", 1, 2, 2, false, "parts of the columns that are added up in turn"},
    {"cutters", 3, 7, 3, false, "warps that cut B into parts"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

constexpr std::int64_t kElement = 4;        // bytes of fp32
constexpr std::int64_t kConsumerRows = 64;  // rows of a warpgroup's instruction
constexpr std::int64_t kSlabElements = kSlabBytes / kElement;
constexpr std::int64_t kParts = 3;     // bf16 that make up an fp32
constexpr std::int64_t kProducts = 6;  // of parts, that count

std::int32_t consumers(const Values& v) {
  return static_cast<std::int32_t>(std::max<std::int64_t>(1, v[kBlockM] / kConsumerRows));
}
std::int32_t helpers(const Values& v) {
  return static_cast<std::int32_t>(ceil_div(1 + v[kCutters], 4));
}
std::int32_t threads_of(const Values& v) {
  return static_cast<std::int32_t>(kWarpgroup * (helpers(v) + consumers(v)));
}
// Columns of a stage: block_n of each matrix of weights.
std::int32_t columns(const Values& v, const KernelTraits& t) { return v[kBlockN] * weights(t); }
std::int32_t chain_columns(const Values& v, const KernelTraits& t) {
  return columns(v, t) / v[kChains];
}

SlabTile tile_of(bool k_major, std::int64_t extent, const Values& v) {
  return slab_tile(k_major, extent, v[kBlockK], kElement);
}
SlabTile tile_a(const Values& v, const KernelTraits& t) {
  return tile_of(a_is_k_major(t.layout), v[kBlockM], v);
}
SlabTile tile_b(const Values& v, const KernelTraits& t) {
  return tile_of(b_is_k_major(t.layout), columns(v, t), v);
}
// The part of B's tile that one matrix of weights fills.
SlabTile tile_weights(const Values& v, const KernelTraits& t) {
  return tile_of(b_is_k_major(t.layout), v[kBlockN], v);
}

constexpr Constraint kConstraints[] = {
    {"consumer_rows", "block_m must be 64, 128 or 192: one to three warpgroups multiply",
     [](const Values& v, const KernelTraits&) {
       return v[kBlockM] % kConsumerRows == 0 && v[kBlockM] / kConsumerRows <= 3;
     }},
    {"columns", "block_n must be a multiple of 8 x chains, gated of 8; 256 at most",
     [](const Values& v, const KernelTraits& t) {
       return v[kBlockN] % (t.gated ? 8 : 8 * v[kChains]) == 0 && v[kBlockN] <= kMaxBox;
     }},
    {"chain_slabs", "where B is contiguous along n, two chains take 32 columns each or a multiple",
     [](const Values& v, const KernelTraits& t) {
       return v[kChains] == 1 || b_is_k_major(t.layout) || chain_columns(v, t) % kSlabElements == 0;
     }},
    kWholeSlabs,
    {"rings", "the second ring must not be deeper than the first",
     [](const Values& v, const KernelTraits&) { return v[kCutStages] <= v[kStages]; }},
    {"slab", "block_k must be 32: tensor cores may not add up more before it is rounded",
     [](const Values& v, const KernelTraits&) { return v[kBlockK] == kSlabElements; }},
};

// Shared memory: the ring of stages, each A then B as they come from memory; the ring of B's parts;
// two barriers for each stage of both; for each of the second a word that names a tile of C.
struct SmemLayout {
  std::int64_t stage_bytes;
  std::int64_t cut_bytes;
  std::int64_t ring_bytes;
  std::int64_t cuts_bytes;
  std::int64_t barrier_bytes;
  std::int64_t mark_bytes;
  std::int64_t total() const { return ring_bytes + cuts_bytes + barrier_bytes + mark_bytes; }
};

SmemLayout layout_of(const Values& v, const KernelTraits& t) {
  SmemLayout l{};
  l.stage_bytes = tile_a(v, t).bytes() + tile_b(v, t).bytes();
  l.cut_bytes = kParts * tile_b(v, t).bytes() / 2;
  l.ring_bytes = v[kStages] * l.stage_bytes;
  l.cuts_bytes = v[kCutStages] * l.cut_bytes;
  l.barrier_bytes = 8 * 2 * (v[kStages] + v[kCutStages]);
  l.mark_bytes = 8 * ceil_div(v[kCutStages], 2);
  return l;
}

// Registers per thread after setmaxnreg, out of what the launch gives to all warpgroups together.
struct Roles {
  std::int32_t helper;
  std::int32_t consumer;
};
Roles roles_of(const Values& v) {
  if (helpers(v) == 1) {
    switch (consumers(v)) {
      case 1:
        return {0, 0};  // two warpgroups: everyone has 255 from the start
      case 2:
        return {56, 224};  // of 3 x 168
      default:
        return {56, 152};  // of 4 x 128
    }
  }
  switch (consumers(v)) {
    case 1:
      return {128, 240};  // of 3 x 168
    case 2:
      return {48, 208};  // of 4 x 128
    default:
      return {48, 128};  // of 5 x 96
  }
}

constexpr std::int32_t kInstructionRegisters = 30;
constexpr std::int32_t kFragmentRegisters = 2 * 24;  // of one k tile of A, and of the next
constexpr std::int32_t kConsumerRegisters = 8;

std::int32_t live(const Values& v, const KernelTraits& t) {
  return columns(v, t) + kFragmentRegisters + kConsumerRegisters;
}
std::int32_t to_compile(const Values& v, const KernelTraits& t) {
  return chain_columns(v, t) / 2 + kInstructionRegisters;
}

class WgmmaFp32 final : public GemmTwin {
 public:
  std::string_view name() const override { return "wgmma_fp32"; }
  std::string_view entry() const override { return "gemm_wgmma_fp32"; }
  DeviceSource source() const override { return embedded::gemm_wgmma_fp32_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::int64_t least_k(const KernelTraits&) const override { return kLeastKInParts; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (traits.exact_fp32) return kExactByFfma;
    if (std::string lack = no_wgmma(device); !lack.empty()) return lack;
    if (traits.dtype != DType::fp32) return "multiplies fp32 only";
    return traits.gated ? not_loadable(traits) : "";  // else copies what it cannot load
  }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const SmemLayout l = layout_of(v, traits);
    const SlabTile a = tile_a(v, traits);
    const SlabTile b = tile_b(v, traits);
    return {
        {"pipeline",
         fmt::format("{} stages x ({} x {} + {} x {}) rows x 128 bytes", v[kStages], a.slabs,
                     a.rows, b.slabs, b.rows),
         l.ring_bytes},
        {"parts of B",
         fmt::format("{} stages x {} parts x {} x {} rows x 64 bytes", v[kCutStages], kParts,
                     b.slabs, b.rows),
         l.cuts_bytes},
        {"barriers", fmt::format("2 x ({} + {}) stages x 8 bytes", v[kStages], v[kCutStages]),
         l.barrier_bytes},
        {"marks", fmt::format("{} stages x 4 bytes, in whole 8", v[kCutStages]), l.mark_bytes},
        {"total", "", l.total()},
    };
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const Values& v = config.values;
    return {
        {"producer and cutters", fmt::format("1 + {} warps, in fours, x 32", v[kCutters]),
         kWarpgroup * helpers(v)},
        {"consumers", fmt::format("{} / 64 x 4 warps x 32", v[kBlockM]), kWarpgroup * consumers(v)},
        {"total", "", threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    const Roles roles = roles_of(v);
    const char* twice = t.gated ? "2 x " : "";
    std::vector<Term> terms = {
        {"accumulators", fmt::format("64 x {}{} / 128", twice, v[kBlockN]), columns(v, t) / 2},
        {"their sums", "as many", columns(v, t) / 2},
        {"parts of A", "2 buffers x 3 parts x 2 instructions x 4", kFragmentRegisters},
        {"addresses and loop", "measured", kConsumerRegisters},
        {"live at once", "spills where a consumer has fewer", live(v, t)},
        {"to compile at all",
         fmt::format("{} / 2 + {}", chain_columns(v, t), kInstructionRegisters), to_compile(v, t)},
    };
    if (roles.consumer > 0) {
      terms.push_back({"helper", "after setmaxnreg", roles.helper});
      terms.push_back({"consumer", "after setmaxnreg", roles.consumer});
    }
    return terms;
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const Roles roles = roles_of(v);
    const std::int32_t alive = live(v, traits);
    BlockNeeds needs{layout_of(v, traits).total(), threads_of(v), 1, alive, alive};
    if (roles.consumer > 0) {
      needs.registers = kMaxRegisters;  // setmaxnreg makes ptxas take all that the launch permits
      needs.role_registers = roles.consumer;
    }
    needs.min_registers = to_compile(v, traits);
    needs.wgmma_columns = chain_columns(v, traits);
    return needs;
  }

  bool persistent(const Config&) const override { return true; }
  Problem loaded(const Problem& problem) const override {
    return is_gated(problem) ? problem : packed(problem);
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Values& v = config.values;
    const SmemLayout l = layout_of(v, traits);
    const Roles roles = roles_of(v);
    // The instruction names each accumulator; behind them stand its sources (multiply() in
    // wgmma_fp32_accumulate.cuh).
    const std::int32_t accumulators = chain_columns(v, traits) / 2;
    std::string registers;
    std::string operands;
    for (std::int32_t i = 0; i < accumulators; ++i) {
      registers += fmt::format("{}%{}", i > 0 ? ", " : "", i);
      operands += fmt::format("{}\"+f\"(d[{}])", i > 0 ? ", " : "", i);
    }
    const auto source = [&](std::int32_t i) { return fmt::format("%{}", accumulators + i); };
    return {{"PACKED", packs(traits) ? "1" : "0"},
            {"SMEM_STAGE_BYTES", std::to_string(l.stage_bytes)},
            {"SMEM_CUT_BYTES", std::to_string(l.cut_bytes)},
            {"HELPER_REGISTERS", std::to_string(roles.helper)},
            {"CONSUMER_REGISTERS", std::to_string(roles.consumer)},
            {"WGMMA_SHAPE", fmt::format("\"m64n{}k16\"", chain_columns(v, traits))},
            {"WGMMA_REGISTERS", "\"" + registers + "\""},
            {"WGMMA_OPERANDS", operands},
            {"WGMMA_SOURCES", fmt::format("\"{{{}, {}, {}, {}}}, {}\"", source(0), source(1),
                                          source(2), source(3), source(4))},
            {"WGMMA_ACCUMULATE", fmt::format("\"{}\"", source(5))}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec&,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::tensor;
    work.unit_rate = 1.0 / kProducts;
    work.stages = v[kStages];
    work.warps = 4 * consumers(v);
    work.asynchronous = true;
    work.load_piece_bytes = kSlabBytes;
    // Each instruction reads all columns of one part of B; cutting reads B and writes its parts;
    // A is read once.
    const double raw_a = static_cast<double>(v[kBlockM] * v[kBlockK]) * kElement;
    const double raw_b = static_cast<double>(tile_b(v, traits).bytes());
    const double part = static_cast<double>(columns(v, traits) * v[kBlockK]) * 2;
    work.smem_bytes_per_k_tile = kProducts * consumers(v) * part + raw_a + raw_b +
                                 raw_b / 2 * kParts + work.load_bytes_per_k_tile;
  }

  void fill_parameter(const Config& config, const Problem& given, const GemmArgs& given_args,
                      const SplitShape&, std::uint64_t workspace, LaunchPlan& plan) const override {
    const Values& v = config.values;
    const Problem problem = loaded(given);
    const KernelTraits traits = traits_of(given);
    GemmArgs args = given_args;
    PackArgs copies{};
    if (packs(traits)) copies = pack(given, problem, workspace, 0, args);
    WgmmaFp32Args whole{};
    whole.gemm = args;
    put_argument<GatedWgmmaFp32Args>(whole, problem, tile_a(v, traits).rows,
                                     tile_weights(v, traits).rows, plan);
    if (!packs(traits)) return;
    put_pack<PackedWgmmaFp32Args, WgmmaFp32Args>(copies, plan);
    // What parts of bf16 do not hold is multiplied from where it lies.
    std::memcpy(plan.params.data() + offsetof(WgmmaFp32Args, gemm), &given_args,
                sizeof(given_args));
  }

 private:
  static bool packs(const KernelTraits& traits) {
    return !traits.gated && !has_aligned_rows(traits);
  }

  static constexpr std::int32_t kMaxRegisters = 255;
};

const WgmmaFp32 kWgmmaFp32;

}  // namespace

const HostTwin& wgmma_fp32_kernel = kWgmmaFp32;

}  // namespace autotune::gemm

// Host twin of wgmma.cuh: Hopper's warpgroup matrix instructions, fed by the tensor copy engine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "kernels/gemm/hopper_twin.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/gemm/wgmma_layout.h"

namespace autotune::embedded {
extern const DeviceSource gemm_wgmma_source;
}

namespace autotune::gemm {
namespace {

using namespace wgmma;

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 128, false, "rows of C per block; of wgmma_swap columns"},
    {"block_n", 1, 4096, 128, false, "columns of C per block; of wgmma_swap rows"},
    {"block_k", 1, 1024, 64, false, "depth of one pipeline stage"},
    {"stages", 2, 64, 4, false, "k tiles in flight"},
    {"consumers", 1, 3, 2, false, "warpgroups that multiply"},
    {"pingpong", 0, 1, 0, false, "consumers share a tile (0) or take turns (1)"},
    {"cluster_m", 1, 4, 1, false, "blocks along block_m that share the other operand's loads"},
    {"cluster_n", 1, 4, 1, false, "blocks along block_n that share the other operand's loads"},
    {"split_k", 1, 64, 1, false,
     "parts of k in blocks of their own, added up: by a cluster of up to 8 that shares no loads, "
     "else in a workspace by blocks that all run at once"},
    {"stagger", 0, 1024, 0, true,
     "k tiles by which a tile of C begins further along k than the one before, and ends with those "
     "it left out; of no effect where there are more than two tiles in both directions"},
    kRaster,
    kSwizzle,
};

template <bool kTransposes>
constexpr Constraint kConstraints[] = {
    {"consumer_rows", "a consumer's rows of the tile must be a multiple of 64",
     [](const Values& v, const KernelTraits&) {
       const std::int64_t all = kInstructionM * (v[kPingpong] != 0 ? 1 : v[kConsumers]);
       return v[kBlockM] % all == 0;
     },
     reads_of({kBlockM, kConsumers, kPingpong})},
    {"columns", "block_n must be a multiple of 8",
     [](const Values& v, const KernelTraits&) { return v[kBlockN] % 8 == 0; }, reads_of({kBlockN})},
    {"pingpong_pair", "pingpong takes two consumers",
     [](const Values& v, const KernelTraits&) { return v[kPingpong] == 0 || v[kConsumers] == 2; },
     reads_of({kConsumers, kPingpong})},
    {"split_turns", "consumers of blocks that split k take no turns",
     [](const Values& v, const KernelTraits&) { return v[kSplitK] == 1 || v[kPingpong] == 0; },
     reads_of({kPingpong, kSplitK})},
    {"split_columns", "block_n must be a multiple of 8 for each block of a cluster that splits k",
     [](const Values& v, const KernelTraits&) { return v[kBlockN] % (8 * parts_of(v)) == 0; },
     reads_of({kBlockN, kClusterM, kClusterN, kSplitK})},
    {"slabs", "block_k must be a multiple of 128 bytes",
     [](const Values& v, const KernelTraits& t) { return v[kBlockK] % slab_elements(t) == 0; },
     reads_of({kBlockK})},
    {"box_a", "the tile along block_m must have 256 rows at most, which one copy loads",
     [](const Values& v, const KernelTraits& t) {
       return tile_a(v, kTransposes ? transposed(t) : t).rows <= kMaxBox;
     },
     reads_of({kBlockM, kBlockK})},
    {"box_b", "the tile along block_n must have 256 rows at most, which one copy loads",
     [](const Values& v, const KernelTraits& t) {
       // An instruction wider than 256 columns has a rule of its own.
       return columns(v, t) > kMaxBox ||
              tile_weights(v, kTransposes ? transposed(t) : t).rows <= kMaxBox;
     },
     reads_of({kBlockN, kBlockK})},
    {"accumulators",
     "a consumer's tile must leave registers: rows x block_n / 128, twice where gated, at most 256",
     [](const Values& v, const KernelTraits& t) { return accumulators(v, t) <= 256; },
     reads_of({kBlockM, kBlockN, kConsumers, kPingpong})},
    kWholeSlabs,
    kWholeGates<kSplitK>,
};

// Measured with ptxas 13.0: a matrix instruction needs its accumulators and 26 more registers at
// launch (else error C7602); a consumer with 232 registers keeps 200 accumulators without spilling.
constexpr std::int32_t kInstructionRegisters = 26;
constexpr std::int32_t kConsumerRegisters = 32;

// wgmma_swap is the same on C's transpose: an instruction's 64 rows are columns of C, and its
// columns, any eights, rows of C. For few rows, and where that makes fewer tiles.
//
// wgmma_pack is for operands whose rows do not begin on 16 bytes, which the copy engine needs: its
// blocks copy them to the workspace first.
class Wgmma final : public GemmTwin {
 public:
  enum class Way : std::uint8_t { plain, swap, pack };
  explicit Wgmma(Way way) : transposes_(way == Way::swap), packs_(way == Way::pack) {}

  std::string_view name() const override {
    return transposes_ ? "wgmma_swap" : packs_ ? "wgmma_pack" : "wgmma";
  }
  std::string_view entry() const override { return "gemm_wgmma"; }
  DeviceSource source() const override { return embedded::gemm_wgmma_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override {
    return transposes_ ? std::span<const Constraint>(kConstraints<true>) : kConstraints<false>;
  }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (std::string lack = no_wgmma(device); !lack.empty()) return lack;
    if (traits.dtype == DType::fp32) return "multiplies bf16, fp16 and tf32 only";
    const bool k_major = a_is_k_major(traits.layout) && b_is_k_major(traits.layout);
    if (traits.dtype == DType::tf32 && !k_major) {
      return "tf32 operands must be contiguous along k (layout tn)";
    }
    if (transposes_) {
      if (traits.gated) return "does not gate: gates are columns of B";
      if (storage_bytes(traits.out_dtype) != 2) return "stores C in 16-bit types only";
    }
    if (!packs_) return not_loadable(traits);
    if (traits.gated) return "does not gate";
    return no_unaligned_rows(traits);
  }

  std::int64_t ring_bytes(const Config& config, const KernelTraits& asked) const override {
    return wgmma::ring_bytes(config.values, product_of(asked));
  }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits& asked) const override {
    const Values& v = config.values;
    const KernelTraits traits = product_of(asked);
    const SmemLayout l = layout_of(v, traits);
    const SlabTile a = tile_a(v, traits);
    const SlabTile b = tile_b(v, traits);
    std::vector<Term> terms = {
        {"pipeline",
         fmt::format("{} stages x ({} x {} + {} x {}) rows x 128 bytes", v[kStages], a.slabs,
                     a.rows, b.slabs, b.rows),
         l.ring_bytes},
    };
    if (!l.stores_in_ring) {
      terms.push_back({"store buffers",
                       fmt::format("{} x 2 x {} rows x {} columns x {} bytes",
                                   transposes_ ? fmt::format("{} consumers", v[kConsumers])
                                               : fmt::format("{} warps", 4 * v[kConsumers]),
                                   buffer_rows(), l.chunk, storage_bytes(traits.out_dtype)),
                       l.stores_bytes});
    }
    terms.push_back(
        {"barriers",
         fmt::format("(2 x {} stages + 2{}) x 8 bytes", v[kStages],
                     l.given_bytes > 0 ? fmt::format(" + 2 x {} warps", 4 * v[kConsumers]) : ""),
         8 * l.barriers});
    if (l.given_bytes > 0) {
      terms.push_back({"other parts",
                       fmt::format("{} x {} rows x {} columns x 4 bytes", parts_of(v) - 1,
                                   v[kBlockM], slice_columns(v)),
                       l.given_bytes});
    }
    terms.push_back({"total", "", l.total()});
    return terms;
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const std::int32_t consumers = config.values[kConsumers];
    return {{"producer", "4 warps x 32", kWarpgroup},
            {"consumers", fmt::format("{} x 4 warps x 32", consumers), kWarpgroup * consumers},
            {"total", "", threads_of(config.values)}};
  }

  std::vector<Term> register_terms(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    const Roles roles = roles_of(v);
    const char* twice = t.gated ? "2 x " : "";
    std::vector<Term> terms = {
        {"accumulators", fmt::format("{} x {}{} / 128", consumer_rows(v), twice, v[kBlockN]),
         accumulators(v, t)},
        {"addresses and loop", "measured", kConsumerRegisters},
        {"live at once", "spills where a consumer has fewer",
         accumulators(v, t) + kConsumerRegisters},
        {"to compile at all",
         fmt::format("{}{} / 2 + {}", twice, v[kBlockN], kInstructionRegisters),
         columns(v, t) / 2 + kInstructionRegisters},
    };
    if (roles.consumer > 0) {
      terms.push_back({"producer", "after setmaxnreg", roles.producer});
      terms.push_back({"consumer", "after setmaxnreg", roles.consumer});
    }
    return terms;
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const std::int32_t live =
        static_cast<std::int32_t>(accumulators(v, traits)) + kConsumerRegisters;
    const Roles roles = roles_of(v);
    const SmemLayout l = layout_of(v, traits);
    BlockNeeds needs{l.total(), threads_of(v), 1, live, live};
    if (roles.consumer > 0) {
      needs.registers = kMaxRegisters;  // setmaxnreg makes ptxas take all that the launch permits
      needs.role_registers = roles.consumer;
    }
    needs.min_registers = columns(v, traits) / 2 + kInstructionRegisters;
    needs.wgmma_columns = columns(v, traits);
    // The cluster's own takes their place, but where consumers meet: to add up parts in the
    // workspace, or before they store through a stage, or all do behind the copies of operands.
    const bool in_workspace = v[kSplitK] > parts_of(v);
    const bool consumers_meet = in_workspace || l.stores_in_ring;
    const bool all_meet = consumers_meet || packs_;
    if (!all_meet && cluster(config).blocks() * parts_of(v) > 1) needs.barriers = 0;
    // And one for each consumer, whose warps share store buffers.
    if (transposes_) needs.barriers = 1 + v[kConsumers];
    return needs;
  }

  // wgmma_swap is for more than a few rows only where it cuts C into fewer tiles than wgmma does by
  // tiles of the same size.
  std::int64_t served_rows(const Config& config, const Problem& problem) const override {
    constexpr std::int64_t kFewRows = 256;  // searched with any tile (NOTES.md)
    const std::int64_t columns = config.values[kBlockM];
    const std::int64_t rows = config.values[kBlockN];
    const bool fewer = ceil_div(problem.m, rows) * ceil_div(problem.n, columns) <
                       ceil_div(problem.m, columns) * ceil_div(problem.n, rows);
    return transposes_ && !fewer ? kFewRows : 0;
  }

  std::int32_t stagger(const Config& config) const override { return config.values[kStagger]; }

  bool transposes() const override { return transposes_; }
  Problem loaded(const Problem& problem) const override {
    return packs_ ? packed(problem) : problem;
  }
  ClusterShape cluster(const Config& config) const override {
    return {config.values[kClusterM], config.values[kClusterN]};
  }
  // Parts of k are all that there is to do at once. Of clusters that add up by themselves, more
  // than there is room for start later; blocks that wait for others are never more.
  bool persistent(const Config& config) const override { return config.values[kSplitK] == 1; }

  SplitShape split(const Config& config, const Problem& problem,
                   std::int64_t tiles) const override {
    const Values& v = config.values;
    if (parts_of(v) > 1 || v[kSplitK] == 1) return {parts_of(v)};
    SplitShape shape = workspace_split(v[kSplitK], tiles, ceil_div(problem.k, v[kBlockK]));
    shape.cooperative = true;  // also where one part is left: no grid of such clusters is cut
    return shape;
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Values& v = config.values;
    const SmemLayout l = layout_of(v, traits);
    const Roles roles = roles_of(v);
    // The instruction names each accumulator; three operands stand before them (see
    // wgmma_multiply.cuh).
    std::string registers;
    std::string operands;
    for (std::int32_t i = 0; i < columns(v, traits) / 2; ++i) {
      registers += fmt::format("{}%{}", i > 0 ? ", " : "", i + 3);
      operands += fmt::format("{}\"+f\"(d[{}])", i > 0 ? ", " : "", i);
    }
    return {{"SMEM_A_BYTES", std::to_string(l.a_bytes)},
            {"SMEM_B_BYTES", std::to_string(l.b_bytes)},
            {"SMEM_STAGE_BYTES", std::to_string(l.a_bytes + l.b_bytes)},
            {"SMEM_STORE_BYTES", std::to_string(l.store_bytes / kWarpRows * buffer_rows())},
            {"CHUNK_N", std::to_string(l.chunk)},
            {"REST_N", std::to_string(l.rest)},
            {"SPLIT_PARTS", std::to_string(parts_of(v))},
            {"STORES_IN_RING", l.stores_in_ring ? "1" : "0"},
            {"TRANSPOSED", transposes_ ? "1" : "0"},
            {"PACKED", packs_ ? "1" : "0"},
            {"MARK_BYTES", std::to_string(kWorkspaceMarkBytes)},
            {"PRODUCER_REGISTERS", std::to_string(roles.producer)},
            {"CONSUMER_REGISTERS", std::to_string(roles.consumer)},
            {"WGMMA_SHAPE", fmt::format("\"m64n{}k{}\"", columns(v, traits), step_k(traits))},
            {"WGMMA_REGISTERS", "\"" + registers + "\""},
            {"WGMMA_OPERANDS", operands}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec&,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::tensor;
    work.stages = v[kStages];
    work.warps = 4 * v[kConsumers];
    work.asynchronous = true;
    work.stores_then_loads = layout_of(v, traits).stores_in_ring;
    work.load_piece_bytes = kSlabBytes;
    work.epilogue_overlaps = v[kPingpong] != 0;
    // Each instruction reads its 64 rows of A and all columns of B.
    const double instructions = static_cast<double>(v[kBlockM]) / kInstructionM;
    const double k_bytes = static_cast<double>(v[kBlockK] * element(traits));
    work.smem_bytes_per_k_tile =
        instructions * static_cast<double>(kInstructionM + columns(v, traits)) * k_bytes +
        work.load_bytes_per_k_tile;
  }

  void put_first_units(const DeviceSpec& device, LaunchPlan& plan) const override {
    const std::uint32_t blocks = plan.cluster[0];
    if (blocks == 1) return;  // nobody asks
    std::array<unsigned char, WgmmaArgs::kPlaced> units{};
    const std::size_t clusters = std::min<std::size_t>(plan.grid[0] / blocks, units.size());
    place_by_gpc(device, static_cast<int>(blocks), std::span(units).first(clusters));
    std::memcpy(plan.params.data() + offsetof(WgmmaArgs, first_units), units.data(), clusters);
  }

  void fill_parameter(const Config& config, const Problem& given, const GemmArgs& given_args,
                      const SplitShape& split, std::uint64_t workspace,
                      LaunchPlan& plan) const override {
    const Values& v = config.values;
    const Problem problem = loaded(given);
    const KernelTraits traits = traits_of(given);
    GemmArgs args = given_args;
    PackArgs copies{};
    if (packs_) copies = pack(given, problem, workspace, sums_bytes(config, given), args);
    WgmmaArgs whole{};
    whole.gemm = args;
    whole.split = split_args(split, ceil_div(problem.k, v[kBlockK]), args, workspace);
    const bool a_k_major = a_is_k_major(problem.layout);
    const bool b_k_major = b_is_k_major(problem.layout);
    // As tile_bytes() expects.
    put_argument<GatedWgmmaArgs>(
        whole, problem, a_k_major ? loaded_rows(args.m, v[kBlockM]) : tile_a(v, traits).rows,
        b_k_major ? loaded_rows(args.n, v[kBlockN]) : tile_weights(v, traits).rows, plan);
    if (packs_) put_pack<PackedWgmmaArgs, WgmmaArgs>(copies, plan);
    // Of C as it lies: exchanged, a single column of it would pass for a row, which may begin
    // anywhere.
    if (row_alignment(problem.ldc, problem.out_dtype) == 16) put_c(config, problem, args, plan);
    if (a_k_major) {
      put_edge(offsetof(WgmmaArgs, map_a_edge), args.a, args.m, problem.lda, v[kBlockM], problem,
               plan);
    }
    if (b_k_major) {
      const auto put = [&](std::size_t offset, const void* address) {
        put_edge(offset, address, args.n, problem.ldb, v[kBlockN], problem, plan);
      };
      put(offsetof(WgmmaArgs, map_b_edge), args.b);
      if (traits.gated) put(kMapUpEdge, args.up);
    }
  }

 private:
  static constexpr std::int32_t kMaxRegisters = 255;
  static constexpr std::size_t kMapUpEdge = sizeof(WgmmaArgs) + sizeof(TensorMapBytes);
  static_assert(kMapUpEdge + sizeof(TensorMapBytes) == sizeof(GatedWgmmaArgs));

  // The maps by which the copy engine stores C.
  void put_c(const Config& config, const Problem& problem, const GemmArgs& args,
             LaunchPlan& plan) const {
    const SmemLayout l = layout_of(config.values, traits_of(problem));
    plan.maps[plan.map_count++] = store_map(offsetof(WgmmaArgs, map_c), l.chunk, problem, args);
    if (l.rest == l.chunk) return;
    plan.maps[plan.map_count++] = store_map(offsetof(WgmmaArgs, map_c_rest), l.rest, problem, args);
  }

  // For stores of so many columns of the product.
  TensorMap store_map(std::size_t offset, std::int64_t chunk, const Problem& problem,
                      const GemmArgs& args) const {
    // What one store moves: so many rows of C by columns.
    const std::int64_t rows = transposes_ ? chunk : buffer_rows();
    const std::int64_t columns = transposes_ ? buffer_rows() : chunk;
    const std::int64_t row_bytes = columns * storage_bytes(problem.out_dtype);
    const bool swizzled = row_bytes == 128 || row_bytes == 64 || row_bytes == 32;
    TensorMap map;
    map.offset = offset;
    map.element = problem.out_dtype;
    map.address = reinterpret_cast<std::uint64_t>(args.c);
    map.inner = transposes_ ? problem.m : problem.n;
    map.outer = transposes_ ? problem.n : problem.m;
    map.pitch_bytes = problem.ldc * storage_bytes(problem.out_dtype);
    map.box_inner = static_cast<std::uint32_t>(columns);
    map.box_outer = static_cast<std::uint32_t>(rows);
    map.swizzle_bytes = swizzled ? static_cast<std::uint32_t>(row_bytes) : 0;
    return map;
  }

  // The map of an operand's last tile, where it is one of several and not whole.
  static void put_edge(std::size_t offset, const void* address, int rows, std::int64_t leading,
                       int tile_rows, const Problem& problem, LaunchPlan& plan) {
    const int last = rows / tile_rows * tile_rows;
    if (!at_edge(last, rows, tile_rows)) return;
    plan.maps[plan.map_count++] = operand_map(offset, problem.dtype, address, true, rows, problem.k,
                                              leading, loaded_rows(rows - last, tile_rows));
  }

  // Rows of the product in a store buffer: a warp's, or, where they are columns of C, all of a
  // consumer's, so that a store moves whole lines.
  std::int64_t buffer_rows() const { return transposes_ ? kInstructionM : kWarpRows; }

  bool transposes_;
  bool packs_;
};

const Wgmma kWgmma(Wgmma::Way::plain);
const Wgmma kWgmmaSwap(Wgmma::Way::swap);
const Wgmma kWgmmaPack(Wgmma::Way::pack);

}  // namespace

const HostTwin& wgmma_kernel = kWgmma;
const HostTwin& wgmma_swap_kernel = kWgmmaSwap;
const HostTwin& wgmma_pack_kernel = kWgmmaPack;

}  // namespace autotune::gemm

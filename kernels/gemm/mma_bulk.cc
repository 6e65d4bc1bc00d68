// Host twin of mma_bulk.cuh: tensor cores through mma.sync on rows that begin anywhere, brought by
// the copy engine one by one or in boxes, or as runs by cp.async.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/gemm/wgmma_args.h"
// Behind what its members are of.
#include "kernels/gemm/mma_bulk_args.h"

namespace autotune::embedded {
extern const DeviceSource gemm_mma_bulk_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kWarpsM, kWarpsN, kWarpsK, kSplitK, kBoxes };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 64, false, "rows of C per block"},
    {"block_n", 1, 4096, 64, false, "columns of C per block"},
    {"block_k", 1, 2048, 128, false, "depth of one pipeline stage"},
    {"stages", 1, 64, 2, false, "k tiles in flight"},
    {"warps_m", 1, 64, 2, false, "warps along m"},
    {"warps_n", 1, 64, 2, false, "warps along n"},
    {"warps_k", 1, 16, 1, false, "warps along k, whose sums meet at the end"},
    {"split_k", 1, 8, 1, false, "parts of k in the blocks of a cluster, added up by them"},
    {"boxes", 0, 1, 0, false, "whether rows come as boxes of tensor maps, or by themselves"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

constexpr std::int64_t kLine = 128;     // bytes
constexpr std::int64_t kPiece = 16;     // bytes that the copy engine moves at once
constexpr std::int64_t kMostBox = 256;  // elements or rows

std::int64_t element(const KernelTraits& traits) { return storage_bytes(traits.dtype); }
std::int32_t threads_of(const Values& v) { return 32 * v[kWarpsM] * v[kWarpsN] * v[kWarpsK]; }
std::int64_t warp_m(const Values& v) { return v[kBlockM] / v[kWarpsM]; }
std::int64_t warp_n(const Values& v) { return v[kBlockN] / v[kWarpsN]; }
std::int64_t accumulators(const Values& v) { return warp_m(v) * warp_n(v) / 32; }
std::int64_t row_bytes(const Values& v, const KernelTraits& t) { return v[kBlockK] * element(t); }

// Elements of a row of a box: those before the row's first as well, of which there may be a piece.
std::int64_t box_columns(const Values& v, const KernelTraits& t) {
  return v[kBlockK] + kPiece / element(t);
}
// A box has every so many of an operand's rows, which begin alike within a piece.
std::int64_t rows_apart(std::int32_t align) { return kPiece / align; }

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
    {"copies",
     "a thread copies at most four rows of a stage, but for boxes: (block_m + block_n) / threads",
     [](const Values& v, const KernelTraits&) {
       return v[kBoxes] != 0 || v[kBlockM] + v[kBlockN] <= 4 * threads_of(v);
     },
     reads_of({kBlockM, kBlockN, kWarpsM, kWarpsN, kWarpsK, kBoxes})},
    {"boxes", "a box has at most 256 elements of a row, block_k and 16 bytes more, and 256 rows",
     [](const Values& v, const KernelTraits& t) {
       const std::int64_t rows =
           std::max(v[kBlockM] / rows_apart(t.align_a), v[kBlockN] / rows_apart(t.align_b));
       return v[kBoxes] == 0 || (box_columns(v, t) <= kMostBox && rows <= kMostBox);
     },
     reads_of({kBlockM, kBlockN, kBlockK, kBoxes})},
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

// Of a tile's rows of an operand. Boxes begin on lines.
std::int64_t operand_bytes(const Values& v, std::int64_t slot, std::int64_t rows,
                           std::int32_t align) {
  const std::int64_t boxes = v[kBoxes] != 0 ? rows_apart(align) : 1;
  return boxes * ceil_div(rows / boxes * slot, kLine) * kLine;
}

Layout layout_of(const Values& v, const KernelTraits& t) {
  const std::int64_t parts = v[kSplitK];
  Layout l{};
  l.slot_bytes = row_bytes(v, t) + (v[kBoxes] != 0 ? kPiece : kLine);
  l.stage_bytes = operand_bytes(v, l.slot_bytes, v[kBlockM], t.align_a) +
                  operand_bytes(v, l.slot_bytes, v[kBlockN], t.align_b);
  l.sums_bytes = std::int64_t{v[kWarpsK]} * v[kBlockM] * (v[kBlockN] + 8) * 4;
  l.ring_bytes = std::max(v[kStages] * l.stage_bytes, l.sums_bytes);
  l.given_bytes = (parts - 1) * (v[kBlockM] / parts) * v[kBlockN] * 4;
  l.barriers = v[kStages] + (parts > 1 ? 1 : 0);
  return l;
}

// What a lane holds in registers beside addresses.
struct Registers {
  std::int64_t sums;    // twice where a warp has four tiles or less (kChains)
  std::int64_t step;    // fragments of a step along k: 4 per 16 rows of A, 2 per 8 columns of B
  std::int64_t steps;   // that are read together (kGroup)
  std::int64_t rows;    // where those of its fragments begin
  std::int64_t copies;  // rows that it copies
  bool halves;          // a word that begins on 2 bytes is made of two
};

Registers registers_of(const Values& v, const KernelTraits& t) {
  const std::int64_t tiles_m = warp_m(v) / 16;
  const std::int64_t tiles_n = warp_n(v) / 8;
  Registers r{};
  r.sums = accumulators(v) * (tiles_m * tiles_n <= 4 ? 2 : 1);
  r.step = 4 * tiles_m + 2 * tiles_n;
  r.steps = r.step <= 12 ? 4 : r.step <= 24 ? 2 : 1;
  r.rows = 2 * tiles_m + tiles_n;
  r.copies = v[kBoxes] != 0 ? 1 : ceil_div(v[kBlockM] + v[kBlockN], threads_of(v));
  r.halves = std::min(t.align_a, t.align_b) < 4;
  return r;
}

// Fitted to ptxas 13.0 for sm_90a: the estimate, which is the sum of these, to 240 random configs
// (and that of halves to 120 more) in bf16, fp16 and tf32; what is live at once, while multiplying
// or while copying, to 450 of many threads, of which it names just those 55 that spill.
constexpr std::int64_t kBaseRegisters = 37;
constexpr std::int64_t kMultiplying = 30;
constexpr std::int64_t kCopying = 42;

std::int64_t of_fragments(const Registers& r) { return r.steps * r.step * 7 / 10; }
std::int64_t of_rows(const Registers& r) { return r.rows * 3 / 2; }
std::int64_t of_copies(const Registers& r) { return 6 * r.copies; }
std::int64_t of_halves(const Registers& r) { return r.halves ? 8 : 0; }

std::int32_t estimate(const Registers& r) {
  return static_cast<std::int32_t>(r.sums + of_fragments(r) + of_rows(r) + of_copies(r) +
                                   of_halves(r) + kBaseRegisters);
}
std::int32_t live(const Registers& r) {
  const std::int64_t multiplying = r.step + (r.halves ? 8 : 0) + kMultiplying;
  const std::int64_t copying = 4 * r.copies + kCopying;
  return static_cast<std::int32_t>(r.sums + r.rows + std::max(multiplying, copying));
}

class MmaBulk final : public GemmTwin {
 public:
  std::string_view name() const override { return "mma_bulk"; }
  std::string_view entry() const override { return "gemm_mma_bulk"; }
  DeviceSource source() const override { return embedded::gemm_mma_bulk_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (!device.limits.has(Feature::tma)) {
      return fmt::format("{} has no bulk copies", device.limits.arch);
    }
    if (traits.dtype == DType::fp32) return "multiplies bf16, fp16 and tf32 only";
    if (traits.gated) return "does not gate";
    if (const std::string none = no_unaligned_rows(traits); !none.empty()) return none;
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
         fmt::format("{} stages x ({} + {}) x ({} x {} + {}) bytes{}", v[kStages], v[kBlockM],
                     v[kBlockN], v[kBlockK], element(traits), v[kBoxes] != 0 ? kPiece : kLine,
                     v[kBoxes] != 0 ? ", each box in lines" : ""),
         v[kStages] * l.stage_bytes},
        {"sums (same bytes)",
         fmt::format("{} x {} x ({} + 8) x 4 bytes", v[kWarpsK], v[kBlockM], v[kBlockN]),
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
    return {{"warps", fmt::format("{} x {} x {} warps x 32", v[kWarpsM], v[kWarpsN], v[kWarpsK]),
             threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config, const KernelTraits& t) const override {
    const Values& v = config.values;
    const Registers r = registers_of(v, t);
    return {
        {"sums",
         fmt::format("{} x {} / 32{}", warp_m(v), warp_n(v),
                     r.sums > accumulators(v) ? ", twice" : ""),
         r.sums},
        {"fragments",
         fmt::format("0.7 x {} steps x ({} / 16 x 4 + {} / 8 x 2)", r.steps, warp_m(v), warp_n(v)),
         of_fragments(r)},
        {"rows", fmt::format("1.5 x {}, where its fragments begin", r.rows), of_rows(r)},
        {"copies", fmt::format("6 x {} rows of a stage", r.copies), of_copies(r)},
        {"halves", "where words begin on 2 bytes", of_halves(r)},
        {"addresses and loop", "fitted", kBaseRegisters},
        {"estimate", "before the launch cap", estimate(r)},
        {"live at once", "spills where the cap is below", live(r)},
    };
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const Registers r = registers_of(v, traits);
    return {layout_of(v, traits).total(), threads_of(v), 1, estimate(r), live(r)};
  }

  SplitShape split(const Config& config, const Problem&, std::int64_t) const override {
    return {config.values[kSplitK]};
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Layout l = layout_of(config.values, traits);
    return {{"SMEM_SLOT_BYTES", std::to_string(l.slot_bytes)},
            {"SMEM_STAGE_BYTES", std::to_string(l.stage_bytes)},
            {"SMEM_RING_BYTES", std::to_string(l.ring_bytes)}};
  }

  void fill_parameter(const Config& config, const Problem& problem, const GemmArgs& args,
                      const SplitShape&, std::uint64_t, LaunchPlan& plan) const override {
    const Values& v = config.values;
    if (v[kBoxes] == 0) return put_parameter(args, plan);
    MmaBulkArgs whole{};
    whole.gemm = args;
    put_parameter(whole, plan);
    const KernelTraits traits = traits_of(problem);
    const auto put = [&](const void* matrix, std::int64_t rows, std::int64_t leading,
                         std::int64_t block, std::int32_t align) {
      const std::int64_t apart = rows_apart(align);
      for (std::int64_t i = 0; i < apart; ++i) {
        const std::int64_t first = i < rows ? i : 0;  // of a box without rows nothing is used
        const std::int64_t bytes = first * leading * element(traits);
        TensorMap map;
        map.offset = offsetof(MmaBulkArgs, maps) + plan.map_count * sizeof(TensorMapBytes);
        map.element = problem.dtype;
        map.address = reinterpret_cast<std::uint64_t>(matrix) + bytes / kPiece * kPiece;
        map.inner = bytes % kPiece / element(traits) + problem.k;
        map.outer = ceil_div(rows - first, apart);
        map.pitch_bytes = apart * leading * element(traits);
        map.box_inner = static_cast<std::uint32_t>(box_columns(v, traits));
        map.box_outer = static_cast<std::uint32_t>(block / apart);
        plan.maps[plan.map_count++] = map;
      }
    };
    put(args.a, args.m, problem.lda, v[kBlockM], traits.align_a);
    put(args.b, args.n, problem.ldb, v[kBlockN], traits.align_b);
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::tensor;
    work.unit_rate = mma_sync_rate(device);
    work.stages = v[kStages];
    work.warps = v[kWarpsM] * v[kWarpsN] * v[kWarpsK];
    const double k_bytes = static_cast<double>(row_bytes(v, traits));
    // Of the words that a lane reads at once those that begin on 2 bytes are made of one more; rows
    // of a group share banks where they cannot be taken apart (classes() in mma_bulk_tile.cuh).
    const double words = 2 * static_cast<double>(registers_of(v, traits).steps);
    const bool pieces = std::min(traits.align_a, traits.align_b) < 8;
    const auto reads = [&](std::int64_t rows, std::int64_t block, std::int32_t align) {
      const bool apart = align == 2 || (align == 8 && !pieces);
      const double more = align == 2 ? (words + 1) / words : 1;
      return static_cast<double>(rows) * more * (apart && block / 8 % 2 != 0 ? 2 : 1);
    };
    const double warp_reads =
        reads(warp_m(v), v[kBlockM], traits.align_a) + reads(warp_n(v), v[kBlockN], traits.align_b);
    work.smem_bytes_per_k_tile =
        work.warps * warp_reads * k_bytes / v[kWarpsK] + work.load_bytes_per_k_tile;
    // The sums of the warps along k meet in shared memory, at about the rate at which C is stored.
    work.store_bytes_per_tile += static_cast<double>(work.cluster_k * v[kWarpsK] * 4) *
                                 static_cast<double>(v[kBlockM] * v[kBlockN]);
    const double rows = static_cast<double>(v[kBlockM] + v[kBlockN]);
    const bool boxes = v[kBoxes] != 0;
    if (work.k_tiles == 1 && !boxes) {  // presumably rows come as runs
      work.load_instructions_per_k_tile = rows * k_bytes / 16 / threads_of(v);
      return;
    }
    // Clocks of the engine for a row: 15, or one for each 27 bytes (measured on an H200); in a box,
    // some 5 and one for each 35 (on an H100). As bytes that the L2's port, 64 in a clock, takes as
    // long for.
    constexpr double kPort = 64;
    const double of_row = boxes ? 5.5 + (k_bytes + kPiece) / 35 : std::max(15.0, k_bytes / 27);
    work.load_bytes_per_k_tile = kPort * rows * of_row;
    const double copies =
        boxes ? static_cast<double>(rows_apart(traits.align_a) + rows_apart(traits.align_b)) : rows;
    work.load_instructions_per_k_tile = copies / work.warps;
  }
};

const MmaBulk kMmaBulk;

}  // namespace

const HostTwin& mma_bulk_kernel = kMmaBulk;

}  // namespace autotune::gemm

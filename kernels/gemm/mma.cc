// Host twin of mma.cuh: tensor cores through mma.sync, operands through a cp.async ring.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/gemm/mma_args.h"

namespace autotune::embedded {
extern const DeviceSource gemm_mma_source;
}

namespace autotune::gemm {
namespace {

enum Index { kBlockM, kBlockN, kBlockK, kStages, kWarpsM, kWarpsN, kSplitK };

constexpr Parameter kParameters[] = {
    {"block_m", 1, 4096, 128, false, "rows of C per block"},
    {"block_n", 1, 4096, 128, false, "columns of C per block"},
    {"block_k", 1, 1024, 64, false, "depth of one pipeline stage"},
    {"stages", 2, 64, 3, false, "k tiles in flight"},
    {"warps_m", 1, 64, 2, false, "warps along m"},
    {"warps_n", 1, 64, 2, false, "warps along n"},
    {"split_k", 1, 16, 1, false, "parts of k in blocks of their own, added up in a workspace"},
    kRaster,
    kSwizzle,
};

using Values = ParameterValuesArray;

std::int64_t element(const KernelTraits& traits) { return storage_bytes(traits.dtype); }
std::int32_t threads_of(const Values& v) { return 32 * v[kWarpsM] * v[kWarpsN]; }
// Depth of one instruction: 32 bytes of k, whatever the element.
std::int64_t step_k(const KernelTraits& traits) { return 32 / element(traits); }
std::int64_t warp_m(const Values& v) { return v[kBlockM] / v[kWarpsM]; }
std::int64_t warp_n(const Values& v) { return v[kBlockN] / v[kWarpsN]; }
// Columns of a warp's products: those of C, of each matrix of weights.
std::int64_t columns(const Values& v, const KernelTraits& t) { return warp_n(v) * weights(t); }
std::int64_t accumulators(const Values& v, const KernelTraits& t) {
  return warp_m(v) * columns(v, t) / 32;
}

// 16-byte chunks in a row of an operand's tile.
std::int64_t chunks(bool k_major, std::int64_t extent, const Values& v, const KernelTraits& t) {
  return (k_major ? v[kBlockK] : extent) * element(t) / 16;
}
std::int64_t chunks_a(const Values& v, const KernelTraits& t) {
  return chunks(a_is_k_major(t.layout), v[kBlockM], v, t);
}
std::int64_t chunks_b(const Values& v, const KernelTraits& t) {
  return chunks(b_is_k_major(t.layout), v[kBlockN], v, t);
}

bool swizzles(std::int64_t chunks) { return chunks > 0 && (chunks % 8 == 0 || 8 % chunks == 0); }
bool loads(std::int64_t chunks, const Values& v) {
  return chunks > 0 && threads_of(v) % chunks == 0;
}

constexpr Constraint kConstraints[] = {
    {"warp_tile_m", "block_m must be a multiple of 16 x warps_m",
     [](const Values& v, const KernelTraits&) { return v[kBlockM] % (16 * v[kWarpsM]) == 0; },
     reads_of({kBlockM, kWarpsM})},
    {"warp_tile_n", "block_n must be a multiple of 16 x warps_n",
     [](const Values& v, const KernelTraits&) { return v[kBlockN] % (16 * v[kWarpsN]) == 0; },
     reads_of({kBlockN, kWarpsN})},
    {"k_steps", "block_k must hold an even number of k steps (64 bytes)",
     [](const Values& v, const KernelTraits& t) { return v[kBlockK] % (2 * step_k(t)) == 0; },
     reads_of({kBlockK})},
    {"swizzle_a", "a row of A's tile must be 16, 32, 64 or a multiple of 128 bytes",
     [](const Values& v, const KernelTraits& t) { return swizzles(chunks_a(v, t)); },
     reads_of({kBlockM, kBlockK})},
    {"swizzle_b", "a row of B's tile must be 16, 32, 64 or a multiple of 128 bytes",
     [](const Values& v, const KernelTraits& t) { return swizzles(chunks_b(v, t)); },
     reads_of({kBlockN, kBlockK})},
    {"threads_cover_a", "the threads must be a multiple of the 16-byte chunks in a row of A's tile",
     [](const Values& v, const KernelTraits& t) { return loads(chunks_a(v, t), v); },
     reads_of({kBlockM, kBlockK, kWarpsM, kWarpsN})},
    {"threads_cover_b", "the threads must be a multiple of the 16-byte chunks in a row of B's tile",
     [](const Values& v, const KernelTraits& t) { return loads(chunks_b(v, t), v); },
     reads_of({kBlockN, kBlockK, kWarpsM, kWarpsN})},
    {"accumulators",
     "a warp's tiles must leave registers: warp_m x warp_n / 32, twice where gated, at most 192",
     [](const Values& v, const KernelTraits& t) { return accumulators(v, t) <= 192; },
     reads_of({kBlockM, kBlockN, kWarpsM, kWarpsN})},
    kWholeGates<kSplitK>,
};

// Shared memory: a ring of stages, each A then B (then Up); the same bytes later hold the warps'
// epilogue buffers of 16 rows each, padded by one 16-byte chunk.
struct Layout {
  std::int64_t a_bytes;
  std::int64_t b_bytes;  // of all weights
  std::int64_t warp_pitch;
  std::int64_t warp_bytes;
  std::int64_t ring_bytes;
  std::int64_t epilogue_bytes;
  std::int64_t total() const { return std::max(ring_bytes, epilogue_bytes); }
};

std::int64_t ring_of(const Values& v, const KernelTraits& t) {
  const std::int64_t rows = v[kBlockM] + std::int64_t{v[kBlockN]} * weights(t);
  return v[kStages] * rows * v[kBlockK] * element(t);
}

Layout layout_of(const Values& v, const KernelTraits& t) {
  Layout l{};
  l.a_bytes = std::int64_t{v[kBlockM]} * v[kBlockK] * element(t);
  l.b_bytes = std::int64_t{v[kBlockN]} * v[kBlockK] * element(t) * weights(t);
  l.warp_pitch = warp_n(v) * storage_bytes(t.out_dtype) + 16;
  l.warp_bytes = 16 * l.warp_pitch;
  l.ring_bytes = ring_of(v, t);
  l.epilogue_bytes = l.warp_bytes * v[kWarpsM] * v[kWarpsN];
  return l;
}

// Registers of one fragment buffer: 4 per 16 rows of A, 4 per 16 columns of B.
std::int32_t fragment_registers(const Values& v, const KernelTraits& t) {
  return static_cast<std::int32_t>((warp_m(v) / 16 + columns(v, t) / 16) * 4);
}

// Copies of 16 bytes that a thread makes per k tile; each keeps an offset, up to a point.
std::int32_t copies_per_thread(const Values& v, const KernelTraits& t) {
  const std::int64_t row_chunks = v[kBlockK] * element(t) / 16;
  const std::int64_t copies = ceil_div(v[kBlockM] * row_chunks, threads_of(v)) +
                              ceil_div(v[kBlockN] * row_chunks, threads_of(v)) * weights(t);
  return static_cast<std::int32_t>(std::min<std::int64_t>(copies, 16));
}

// What a thread holds in registers beside addresses. fp32 fills both fragment buffers with the
// words of one step of 16.
struct Registers {
  std::int64_t accumulators;
  std::int64_t fragments;  // both buffers
  std::int64_t parts = 0;  // fp32: three bf16 of each word of the two buffers
};

Registers registers_of(const Values& v, const KernelTraits& t) {
  Registers r{accumulators(v, t), 2 * std::int64_t{fragment_registers(v, t)}};
  if (t.dtype != DType::fp32) return r;
  r.parts = r.fragments * 3 / 2;
  return r;
}

// Fitted to ptxas 13.0 on 300 random configs for sm_90a: what it takes when nothing is short, and
// the least that must be live at once (no config of the fit that kept within it spilled wrongly:
// 25 of 25 rejected ones spill, 14 that spill a little are not foreseen).
constexpr std::int32_t kBaseRegisters = 40;
constexpr std::int32_t kBaseLive = 27;
// fp32, fitted to another 106: where a k tile is a single step, less is computed ahead. 29 of 29
// rejected ones spill; 17 that spill, most by less than 140 bytes, are not foreseen.
constexpr std::int32_t kBaseLiveParts = 56;
constexpr std::int32_t kBaseLiveOneStep = 32;

constexpr std::int32_t kLeastAsyncCopy = 4;  // bytes of cp.async

// Where rows begin anywhere, four chunks at once are loaded through registers: what that takes
// beyond the rest, fitted to 60 configs.
std::int32_t ragged_registers(const KernelTraits& t) {
  return std::min(t.align_a, t.align_b) < kLeastAsyncCopy ? 24 : 0;
}

std::int32_t registers_per_copy(const KernelTraits& t) { return t.dtype == DType::fp32 ? 6 : 4; }

std::int32_t estimate(const Values& v, const KernelTraits& t) {
  const Registers r = registers_of(v, t);
  return static_cast<std::int32_t>(r.accumulators + r.fragments + r.parts) +
         registers_per_copy(t) * copies_per_thread(v, t) + kBaseRegisters + ragged_registers(t);
}
std::int32_t live(const Values& v, const KernelTraits& t) {
  const Registers r = registers_of(v, t);
  if (t.dtype == DType::fp32) {
    const bool one_step = v[kBlockK] == 2 * step_k(t);
    return static_cast<std::int32_t>(r.accumulators + r.parts) +
           (one_step ? kBaseLiveOneStep : kBaseLiveParts);
  }
  return static_cast<std::int32_t>(r.accumulators) + fragment_registers(v, t) * 8 / 5 + kBaseLive;
}

// Bytes of a tile per instruction that loads them. 16 bytes that cannot go straight into shared
// memory take two loads of aligned pieces.
std::int32_t copy_bytes(std::int32_t align, const DeviceSpec& device) {
  if (align == 16 || (align >= kLeastAsyncCopy && device.limits.has(Feature::cp_async)))
    return align;
  return 8;
}

// Of a rate for bf16, what is left for fp32: six products take the place of one, and on small warp
// tiles a scheduler's issue slots are rarer than the tensor cores' clocks. `rate`: of mma.sync.
double share_of_parts(const Values& v, const KernelTraits& t, const DeviceSpec& device,
                      double rate) {
  constexpr double kProducts = 6;
  constexpr double kCut = 12;  // instructions for two words
  constexpr double kFlops = 2 * 16 * 8 * 16;
  const double words = static_cast<double>(warp_m(v) + columns(v, t)) / 2;  // a lane's, per 16 of k
  const double tiles = static_cast<double>(warp_m(v) * columns(v, t)) / (16 * 8);
  const double issue = kCut * words / 2 + (kProducts + 4) * tiles;
  const double schedulers = 4.0 * device.sm_count * device.boost_mhz;
  if (schedulers <= 0 || device.f16_bf16_tflops <= 0) return 1 / kProducts;
  const double flops_per_clock = device.f16_bf16_tflops * 1e6 / schedulers * rate;
  const double multiply = kProducts * tiles * kFlops / flops_per_clock;
  return std::min(1.0, multiply / issue) / kProducts;
}

class Mma final : public GemmTwin {
 public:
  std::string_view name() const override { return "mma"; }
  std::string_view entry() const override { return "gemm_mma"; }
  DeviceSource source() const override { return embedded::gemm_mma_source; }
  std::span<const Parameter> parameters() const override { return checked_parameters(kParameters); }
  std::span<const Constraint> constraints() const override { return kConstraints; }

  std::int64_t least_k(const KernelTraits& traits) const override {
    return traits.dtype == DType::fp32 ? kLeastKInParts : 1;
  }

  std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const override {
    if (traits.exact_fp32) return kExactByFfma;
    // fp32 is multiplied in parts of bf16.
    return no_mma_sync(traits.dtype == DType::fp32 ? DType::bf16 : traits.dtype, device);
  }

  std::int64_t ring_bytes(const Config& config, const KernelTraits& traits) const override {
    return ring_of(config.values, traits);
  }

  std::vector<Term> smem_terms(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    const Layout l = layout_of(v, traits);
    return {
        {"pipeline",
         fmt::format("{} stages x ({} + {}{}) x {} x {} bytes", v[kStages], v[kBlockM],
                     traits.gated ? "2 x " : "", v[kBlockN], v[kBlockK], element(traits)),
         l.ring_bytes},
        {"epilogue (same bytes)",
         fmt::format("{} warps x 16 x ({} x {} + 16) bytes", v[kWarpsM] * v[kWarpsN], warp_n(v),
                     storage_bytes(traits.out_dtype)),
         l.epilogue_bytes},
        {"total", "the larger of both", l.total()},
    };
  }

  std::vector<Term> thread_terms(const Config& config) const override {
    const Values& v = config.values;
    return {{"warps", fmt::format("{} x {} warps x 32", v[kWarpsM], v[kWarpsN]), threads_of(v)}};
  }

  std::vector<Term> register_terms(const Config& config,
                                   const KernelTraits& traits) const override {
    const Values& v = config.values;
    const Registers r = registers_of(v, traits);
    const std::int32_t per_copy = registers_per_copy(traits);
    const char* twice = traits.gated ? "2 x " : "";
    std::vector<Term> terms = {
        {"accumulators", fmt::format("{} x {}{} / 32", warp_m(v), twice, warp_n(v)),
         r.accumulators},
        {"fragments",
         fmt::format("2 buffers x ({} / 16 + {}{} / 16) x 4", warp_m(v), twice, warp_n(v)),
         r.fragments},
    };
    if (r.parts > 0) terms.push_back({"parts", "3 of 2 bytes for each fragment's 4", r.parts});
    if (ragged_registers(traits) > 0) {
      terms.push_back({"loads", "of rows that begin anywhere", ragged_registers(traits)});
    }
    terms.insert(
        terms.end(),
        {{"copies", fmt::format("{} x {} per k tile", per_copy, copies_per_thread(v, traits)),
          per_copy * copies_per_thread(v, traits)},
         {"addresses and loop", "fitted", kBaseRegisters},
         {"estimate", "before the launch cap", estimate(v, traits)},
         {"live at once", "spills where the cap is below", live(v, traits)}});
    return terms;
  }

 protected:
  BlockNeeds needs(const Config& config, const KernelTraits& traits) const override {
    const Values& v = config.values;
    return {layout_of(v, traits).total(), threads_of(v), 1, estimate(v, traits), live(v, traits)};
  }

  SplitShape split(const Config& config, const Problem& problem,
                   std::int64_t tiles) const override {
    const Values& v = config.values;
    return workspace_split(v[kSplitK], tiles, ceil_div(problem.k, v[kBlockK]));
  }

  std::vector<Definition> layout_definitions(const Config& config,
                                             const KernelTraits& traits) const override {
    const Layout l = layout_of(config.values, traits);
    return {{"SMEM_A_BYTES", std::to_string(l.a_bytes)},
            {"SMEM_B_OFFSET", std::to_string(l.a_bytes)},
            {"SMEM_B_BYTES", std::to_string(l.b_bytes)},
            {"SMEM_STAGE_BYTES", std::to_string(l.a_bytes + l.b_bytes)},
            {"SMEM_WARP_PITCH", std::to_string(l.warp_pitch)},
            {"SMEM_WARP_BYTES", std::to_string(l.warp_bytes)},
            {"MARK_BYTES", std::to_string(kWorkspaceMarkBytes)}};
  }

  void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                 Work& work) const override {
    const Values& v = config.values;
    work.unit = Work::Unit::tensor;
    work.unit_rate = mma_sync_rate(device);
    if (traits.dtype == DType::fp32) {
      work.unit_rate *= share_of_parts(v, traits, device, work.unit_rate);
    }
    work.stages = v[kStages];
    work.warps = v[kWarpsM] * v[kWarpsN];
    const double k_bytes = static_cast<double>(v[kBlockK] * element(traits));
    const double warp_reads = static_cast<double>(warp_m(v) + columns(v, traits)) * k_bytes;
    work.smem_bytes_per_k_tile = work.warps * warp_reads + work.load_bytes_per_k_tile;
    const double pieces_a = v[kBlockM] * k_bytes / copy_bytes(traits.align_a, device);
    const double pieces_b =
        v[kBlockN] * weights(traits) * k_bytes / copy_bytes(traits.align_b, device);
    work.load_instructions_per_k_tile = (pieces_a + pieces_b) / threads_of(v);
  }

  void fill_parameter(const Config& config, const Problem& problem, const GemmArgs& args,
                      const SplitShape& split, std::uint64_t workspace,
                      LaunchPlan& plan) const override {
    const Values& v = config.values;
    if (v[kSplitK] == 1) {
      put_parameter(args, plan);
    } else {
      const std::int64_t k_tiles = ceil_div(problem.k, v[kBlockK]);
      SplitMmaArgs whole{};  // with its padding: a launch is the same bytes each time
      static_cast<GemmArgs&>(whole) = args;
      whole.split = split_args(split, k_tiles, args, workspace);
      put_parameter(whole, plan);
    }
  }
};

const Mma kMma;

}  // namespace

const HostTwin& mma_kernel = kMma;

}  // namespace autotune::gemm

#include "kernels/gemm/gemm_twin.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>
#include <numeric>

#include "kernels/gemm/pack.h"

namespace autotune::gemm {
namespace {

// Compute capability from which a launch may begin before the one ahead of it has ended.
constexpr int kFirstToFollow = 90;

// Tiles of C that a cluster (of one block, for most kernels) computes.
struct Tiles {
  std::int64_t m;
  std::int64_t n;
  ClusterShape cluster;
  std::int64_t all() const { return m * n; }  // below 2^62: both are below 2^31
  std::int64_t of_blocks() const { return m * cluster.m * n * cluster.n; }  // and so is this
};

Tiles tiles_of(const Config& config, ClusterShape cluster, const Problem& problem) {
  return {ceil_div(problem.m, std::int64_t{block_m(config)} * cluster.m),
          ceil_div(problem.n, std::int64_t{block_n(config)} * cluster.n), cluster};
}

// Tile order: the last two parameters.
std::int32_t raster(const Config& config) {
  return config.values[config.kernel->parameters().size() - 2];
}
std::int32_t swizzle(const Config& config) {
  return config.values[config.kernel->parameters().size() - 1];
}

// At least: some parts may have one more.
std::int64_t k_tiles_of_part(const Config& config, const Problem& problem,
                             const SplitShape& parts) {
  return ceil_div(problem.k, std::int64_t{block_k(config)}) / (parts.parts * parts.groups);
}

// Tiles that begin at different k tiles, `stagger` from one to the next: a power of two, 1 where
// all begin at the first. Where many tiles share each operand they walk along k together, so that
// what one loads is in the L2 for the others.
constexpr std::int64_t kSharers = 2;
constexpr std::int64_t kMostStarts = 1024;
std::int64_t starts_of(std::int32_t stagger, const Tiles& tiles, std::int64_t k_tiles) {
  if (stagger == 0 || std::min(tiles.m, tiles.n) > kSharers || tiles.all() == 1) return 1;
  const auto fit = static_cast<std::uint64_t>(std::max<std::int64_t>(1, k_tiles / stagger));
  return std::min(kMostStarts, static_cast<std::int64_t>(std::bit_floor(fit)));
}

// Blocks of the launch, which loop over the tiles where there are fewer of them, unless they wait
// for each other. They count tiles in 32 bits: more than a grid could have are too many for a short
// one as well.
std::int64_t grid_of(std::int64_t tiles, std::int64_t blocks, const SplitShape& split,
                     std::int64_t sms) {
  const std::int64_t units = tiles * split.groups;  // what a cluster works on at once
  const bool countable = units <= std::numeric_limits<std::int32_t>::max();
  if (units > std::numeric_limits<std::int64_t>::max() / blocks) {
    return std::numeric_limits<std::int64_t>::max();
  }
  if (sms <= 0 || !countable || split.cooperative) return units * blocks;
  const std::int64_t clusters = std::max<std::int64_t>(1, sms / blocks);
  return std::min(units, clusters) * blocks;
}

// At most so many blocks; 0: as many as there are tiles.
int most_blocks(bool persistent, const DeviceSpec& device, int cluster, int max_sms) {
  return persistent ? presumed_sms(device, cluster, max_sms) : max_sms;
}

// Every group leaves its sums of whole tiles, in fp32.
std::int64_t sums_of(const Config& config, const Tiles& tiles, const SplitShape& parts) {
  if (parts.groups == 1) return 0;
  return tiles.of_blocks() * parts.groups * block_m(config) * std::int64_t{block_n(config)} * 4;
}

// How an operand's tile lies in memory, in elements: rows that one request asks for, or a tile's
// whole ones, from one row to the next, and from one tile to the next in the rows' direction.
struct Rows {
  std::int64_t length;
  std::int64_t pitch;
  std::int64_t step;
};

// Lines of the L2 that a row of a tile touches, relative to one that begins on a line. A row begins
// at any multiple of what the pitch, the step and a line have in common.
double line_share(const Rows& rows, std::int64_t element) {
  const std::int64_t bytes = rows.length * element;
  const std::int64_t common = std::gcd(std::gcd(rows.pitch, rows.step) * element, kL2Line);
  const auto touched = [bytes](std::int64_t step) {
    return static_cast<double>(bytes + kL2Line - std::min(step, bytes));
  };
  return touched(common) / touched(kL2Line);
}

std::string upper(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

Reciprocal reciprocal(std::int64_t divisor) {
  if (divisor <= 1) return 0;
  return std::numeric_limits<Reciprocal>::max() / static_cast<Reciprocal>(divisor) + 1;
}

SplitShape workspace_split(std::int32_t split_k, std::int64_t tiles, std::int64_t k_tiles) {
  SplitShape shape;
  if (tiles <= kTileMarks) {
    shape.groups = static_cast<std::int32_t>(std::clamp<std::int64_t>(k_tiles, 1, split_k));
  }
  return shape;
}

SplitArgs split_args(const SplitShape& split, std::int64_t k_tiles, const GemmArgs& gemm,
                     std::uint64_t workspace) {
  SplitArgs args{};
  args.part_steps = static_cast<int>(k_tiles / split.groups);
  args.longer_parts = static_cast<int>(k_tiles % split.groups);
  args.groups = split.groups;
  args.of_groups = reciprocal(split.groups);
  args.of_tiles = reciprocal(std::int64_t{gemm.tiles_m} * gemm.tiles_n);
  args.workspace = reinterpret_cast<void*>(workspace);
  return args;
}

std::string no_mma_sync(DType dtype, const DeviceSpec& device) {
  const std::string_view wanted = dtype == DType::bf16   ? "bf16"
                                  : dtype == DType::fp16 ? "f16"
                                                         : "tf32";
  const auto& offered = device.limits.mma_dtypes;
  if (std::find(offered.begin(), offered.end(), wanted) != offered.end()) return {};
  return fmt::format("{} has no tensor-core instruction for {}", device.limits.arch,
                     to_string(dtype));
}

double mma_sync_rate(const DeviceSpec& device) {
  // mma.sync reaches 62 % of the rate that wgmma has on 9.0 (public microbenchmarks of the H100);
  // assumed alike where tcgen05 is the full-rate instruction.
  const bool newer = device.limits.has(Feature::wgmma) || device.limits.has(Feature::tcgen05);
  return newer ? 0.62 : 1.0;
}

Problem GemmTwin::product_of(Problem problem) const {
  if (!transposes()) return problem;
  std::swap(problem.m, problem.n);
  std::swap(problem.lda, problem.ldb);
  problem.layout = transposed(problem.layout);
  return problem;
}

std::int64_t GemmTwin::sums_bytes(const Config& config, const Problem& problem) const {
  const Tiles tiles = tiles_of(config, cluster(config), problem);
  return sums_of(config, tiles, split(config, problem, tiles.of_blocks()));
}

Resources GemmTwin::resources(const Config& config, const Problem& asked, const DeviceSpec& device,
                              int max_sms) const {
  const BlockNeeds block = needs(config, product_of(traits_of(asked)));
  const Problem problem = product_of(asked);
  const ClusterShape shape = cluster(config);
  Resources r;
  r.smem_bytes = block.smem_bytes;
  r.threads = block.threads;
  r.min_blocks = block.min_blocks;
  r.registers = block.registers;
  r.register_demand = block.register_demand;
  r.role_registers = block.role_registers;
  r.min_registers = block.min_registers;
  r.wgmma_columns = block.wgmma_columns;
  r.barriers = block.barriers;
  r.most_rows = served_rows(config, asked);
  const Tiles tiles = tiles_of(config, shape, problem);
  const SplitShape parts = split(config, problem, tiles.of_blocks());
  r.cluster = shape.blocks() * parts.parts;
  const Problem served = as_served(problem);
  const Problem lies = loaded(served);
  const std::int64_t packed = packed_bytes(served, lies);
  r.cooperative = parts.cooperative || packed > 0;
  // Only where rows begin within lines larger clusters were faster (NOTES.md, "clusters of four and
  // eight"): elsewhere the SMs that they leave idle cost more than sharing gains.
  const bool known = reached_sms(device, r.cluster, max_sms).has_value();
  const bool splits = splits_lines(lies);
  if (shape.blocks() > kPairCluster && !parts.cooperative && !(known && splits)) {
    r.useful_cluster = kPairCluster;
  }
  r.grid = grid_of(tiles.all(), r.cluster, parts,
                   most_blocks(persistent(config), device, r.cluster, max_sms));
  const std::int64_t behind_marks = sums_of(config, tiles, parts) + packed;
  if (behind_marks > 0) r.workspace_bytes = kWorkspaceMarkBytes + behind_marks;
  return r;
}

LaunchPlan GemmTwin::launch_plan(const Config& config, const Problem& asked,
                                 const DeviceSpec& device, const DevicePointers& pointers,
                                 int max_sms) const {
  const BlockNeeds block = needs(config, product_of(traits_of(asked)));
  const Problem problem = product_of(as_served(asked));
  const ClusterShape shape = cluster(config);
  const Tiles tiles = tiles_of(config, shape, problem);
  GemmArgs args{};
  args.a = reinterpret_cast<const void*>(transposes() ? pointers.b : pointers.a);
  args.b = reinterpret_cast<const void*>(transposes() ? pointers.a : pointers.b);
  args.c = reinterpret_cast<void*>(pointers.c);
  args.lda = problem.lda;
  args.ldb = problem.ldb;
  args.ldc = problem.ldc;
  args.m = static_cast<int>(problem.m);
  args.n = static_cast<int>(problem.n);
  args.k = static_cast<int>(problem.k);
  args.tiles_m = static_cast<int>(tiles.m);
  args.tiles_n = static_cast<int>(tiles.n);
  const bool along_n = raster(config) != 0;
  if (along_n) args.flags |= GemmArgs::kRasterAlongN;
  args.alpha = static_cast<float>(problem.alpha);
  args.beta = static_cast<float>(problem.beta);
  const std::int64_t along = along_n ? tiles.n : tiles.m;
  const std::int64_t across = along_n ? tiles.m : tiles.n;
  args.swizzle = static_cast<int>(tile_order(config).width(across));
  args.of_group = reciprocal(along * args.swizzle);
  args.of_step = reciprocal(args.swizzle);
  args.of_last_step = reciprocal(across % args.swizzle);
  args.up = reinterpret_cast<const void*>(pointers.up);
  const SplitShape parts = split(config, problem, tiles.of_blocks());
  const bool linked = device.limits.cc >= kFirstToFollow;
  if (linked && pointers.link == Link::ahead) args.flags |= GemmArgs::kAdmits;
  const std::int64_t starts =
      starts_of(stagger(config), tiles, k_tiles_of_part(config, problem, parts));
  args.starts = static_cast<std::int16_t>(starts - 1);
  args.stagger = static_cast<std::int16_t>(starts > 1 ? stagger(config) : 0);

  const std::int32_t cluster_blocks = shape.blocks() * parts.parts;
  LaunchPlan plan;
  plan.grid[0] = static_cast<std::uint32_t>(
      grid_of(tiles.all(), cluster_blocks, parts,
              most_blocks(persistent(config), device, cluster_blocks, max_sms)));
  plan.block[0] = static_cast<std::uint32_t>(block.threads);
  plan.cluster[0] = static_cast<std::uint32_t>(cluster_blocks);
  plan.smem_bytes = static_cast<std::uint32_t>(block.smem_bytes);
  plan.cooperative = parts.cooperative || packed_bytes(problem, loaded(problem)) > 0;
  // Blocks that must all run at once may have to wait for room: not among those of another launch.
  plan.follows = linked && pointers.link == Link::behind && !plan.cooperative;
  fill_parameter(config, problem, args, parts, pointers.workspace, plan);
  put_first_units(device, plan);
  return plan;
}

void GemmTwin::fill_parameter(const Config&, const Problem&, const GemmArgs& args,
                              const SplitShape&, std::uint64_t, LaunchPlan& plan) const {
  put_parameter(args, plan);
}

std::vector<Definition> GemmTwin::definitions(const Config& config, const KernelTraits& asked,
                                              const DeviceSpec&) const {
  const KernelTraits traits = product_of(asked);
  std::vector<Definition> list;
  auto define = [&list](std::string name, std::int64_t value) {
    list.emplace_back(std::move(name), std::to_string(value));
  };
  define("DTYPE", static_cast<int>(traits.dtype));  // common.cuh numbers them as DType does
  define("OUT_DTYPE", static_cast<int>(traits.out_dtype));
  define("A_K_MAJOR", a_is_k_major(traits.layout));
  define("B_K_MAJOR", b_is_k_major(traits.layout));
  define("HAS_BETA", traits.beta);
  define("GATED", traits.gated);
  define("ACTIVATION", static_cast<int>(traits.activation));  // as in activation.cuh
  define("ALIGN_A", traits.align_a);
  define("ALIGN_B", traits.align_b);
  define("ALIGN_C", traits.align_c);
  const BlockNeeds block = needs(config, traits);
  define("THREADS", block.threads);
  define("MIN_BLOCKS", block.min_blocks);
  define("SMEM_BYTES", block.smem_bytes);
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    const Parameter& parameter = parameters()[i];
    if (!parameter.run_time && parameter.name != "min_blocks") {
      define(upper(parameter.name), config.values[i]);
    }
  }
  for (Definition& definition : layout_definitions(config, traits)) {
    list.push_back(std::move(definition));
  }
  return list;
}

TileOrder GemmTwin::tile_order(const Config& config) const {
  return {raster(config) != 0, swizzle(config), stagger(config)};
}

void GemmTwin::canonical(const Config& code, const Problem& asked,
                         std::span<TileOrder> orders) const {
  const Problem problem = product_of(asked);
  const Tiles tiles = tiles_of(code, cluster(code), problem);
  const std::int64_t k_tiles =
      k_tiles_of_part(code, problem, split(code, problem, tiles.of_blocks()));
  for (TileOrder& order : orders) {
    const int stagger = starts_of(order.stagger, tiles, k_tiles) > 1 ? order.stagger : 0;
    const std::int64_t across = order.raster_along_n ? tiles.m : tiles.n;
    const std::int64_t width = order.width(across);
    if (tiles.m == 1 || tiles.n == 1) {
      order = {false, 1, stagger};  // a single line of tiles has one order
    } else if (width == across) {
      // One walk over all is the plain walk the other way.
      order = {!order.raster_along_n, 1, stagger};
    } else {
      order = {order.raster_along_n, static_cast<int>(width), stagger};
    }
  }
}

Work GemmTwin::work(const Config& config, const Problem& asked, const DeviceSpec& device) const {
  const KernelTraits traits = product_of(traits_of(asked));
  const Problem problem = product_of(asked);
  const double element = storage_bytes(problem.dtype);
  const double out = storage_bytes(problem.out_dtype);
  Work work;
  work.block_m = block_m(config);
  work.block_n = block_n(config);
  work.block_k = block_k(config);
  const ClusterShape shape = cluster(config);
  const Tiles tiles = tiles_of(config, shape, problem);
  work.tiles_m = tiles.m * shape.m;
  work.tiles_n = tiles.n * shape.n;
  work.k_tiles = ceil_div(problem.k, work.block_k);
  const SplitShape parts = split(config, problem, tiles.of_blocks());
  work.split_k = std::int64_t{parts.parts} * parts.groups;
  work.cluster_k = parts.parts;
  // Parts that wait for each other are laid out tile by tile (wgmma), others part by part (mma).
  work.neighbours_k = parts.cooperative ? work.cluster_k : work.split_k;
  work.cluster_m = shape.m;
  work.cluster_n = shape.n;
  work.order = tile_order(config);
  const double m = static_cast<double>(work.block_m);
  const double n = static_cast<double>(work.block_n);
  const double k = static_cast<double>(work.block_k);
  const double b_columns = n * weights(traits);
  work.flops_per_k_tile = 2.0 * m * b_columns * k;
  work.load_bytes_per_k_tile = (m + b_columns) * k * element;
  work.store_bytes_per_tile = m * n * out * (traits.beta ? 2.0 : 1.0);
  work.a_bytes = static_cast<double>(problem.m) * static_cast<double>(problem.k) * element;
  work.b_bytes =
      static_cast<double>(problem.n) * static_cast<double>(problem.k) * element * weights(traits);
  work.c_bytes = static_cast<double>(problem.m) * static_cast<double>(problem.n) * out *
                 (traits.beta ? 2.0 : 1.0);
  fill_work(config, traits, device, work);
  // Steps behind the end of k are left out.
  work.waits_per_k_tile *= static_cast<double>(problem.k) /
                           (static_cast<double>(work.k_tiles) * static_cast<double>(work.block_k));
  // Lines that rows touch in part count whole, and so do the requests that a tile's last columns
  // take a part of; a cluster asks once for what its blocks share.
  const Problem served = as_served(problem);
  const Problem lies = loaded(served);
  work.packed_bytes = static_cast<double>(packed_bytes(served, lies));
  const std::int64_t bytes = storage_bytes(problem.dtype);
  const auto requested = [&](bool k_major, std::int64_t extent, std::int64_t pitch) {
    const std::int64_t row = k_major ? work.block_k : extent;
    const std::int64_t piece = work.load_piece_bytes > 0 ? work.load_piece_bytes / bytes : row;
    const double whole = static_cast<double>(ceil_div(row, piece) * piece) / row;
    return static_cast<double>(extent) * k * element * whole *
           line_share({std::min(row, piece), pitch, row}, bytes);
  };
  work.a_bytes_per_k_tile = requested(a_is_k_major(lies.layout), work.block_m, lies.lda);
  work.b_bytes_per_k_tile =
      requested(b_is_k_major(lies.layout), work.block_n, lies.ldb) * weights(traits);
  work.a_piece_bytes = (a_is_k_major(lies.layout) ? k : m) * element;
  work.b_piece_bytes = (b_is_k_major(lies.layout) ? k : n) * element;
  work.load_bytes_per_k_tile =
      std::max(work.load_bytes_per_k_tile,
               work.a_bytes_per_k_tile / shape.n + work.b_bytes_per_k_tile / shape.m);
  return work;
}

}  // namespace autotune::gemm

#include "kernels/gemm/gemm_twin.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>

#include "kernels/gemm/args.h"

namespace autotune::gemm {
namespace {

std::int64_t tiles_of(const Config& config, const Problem& problem) {
  const std::int64_t tiles_m = ceil_div(problem.m, block_m(config));
  const std::int64_t tiles_n = ceil_div(problem.n, block_n(config));
  return tiles_m * tiles_n;  // below 2^62: both dimensions are below 2^31
}

// Tile order: the last two parameters.
std::int32_t& raster(Config& config) {
  return config.values[config.kernel->parameters().size() - 2];
}
std::int32_t& swizzle(Config& config) {
  return config.values[config.kernel->parameters().size() - 1];
}
std::int32_t raster(const Config& config) {
  return config.values[config.kernel->parameters().size() - 2];
}
std::int32_t swizzle(const Config& config) {
  return config.values[config.kernel->parameters().size() - 1];
}

std::int64_t grid_of(const Config& config, const Problem& problem, int max_sms) {
  const std::int64_t tiles = tiles_of(config, problem);
  // Blocks loop over tiles, and no more blocks than SMs leaves at most one on each. They count
  // tiles in 32 bits: more than a grid could have are too many for a short one as well.
  const bool countable = tiles <= std::numeric_limits<std::int32_t>::max();
  return max_sms > 0 && countable ? std::min<std::int64_t>(tiles, max_sms) : tiles;
}

std::string upper(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

Resources GemmTwin::resources(const Config& config, const Problem& problem, const DeviceSpec&,
                              int max_sms) const {
  const BlockNeeds block = needs(config, traits_of(problem));
  Resources r;
  r.smem_bytes = block.smem_bytes;
  r.threads = block.threads;
  r.min_blocks = block.min_blocks;
  r.register_demand = block.register_demand;
  r.registers = block.registers;
  r.barriers = 1;
  r.grid = grid_of(config, problem, max_sms);
  return r;
}

Config GemmTwin::canonical(const Config& config, const Problem& problem) const {
  const std::int64_t tiles_m = ceil_div(problem.m, block_m(config));
  const std::int64_t tiles_n = ceil_div(problem.n, block_n(config));
  const std::int64_t across = raster(config) != 0 ? tiles_m : tiles_n;
  Config same = config;
  if (tiles_m == 1 || tiles_n == 1) {
    raster(same) = 0;  // a single line of tiles has one order
    swizzle(same) = 1;
  } else if (swizzle(config) >= across) {
    raster(same) = 1 - raster(config);  // one walk over all is the plain walk the other way
    swizzle(same) = 1;
  }
  return same;
}

LaunchPlan GemmTwin::launch_plan(const Config& config, const Problem& problem, const DeviceSpec&,
                                 const DevicePointers& pointers, int max_sms) const {
  const BlockNeeds block = needs(config, traits_of(problem));
  GemmArgs args{};
  args.a = reinterpret_cast<const void*>(pointers.a);
  args.b = reinterpret_cast<const void*>(pointers.b);
  args.c = reinterpret_cast<void*>(pointers.c);
  args.lda = problem.lda;
  args.ldb = problem.ldb;
  args.ldc = problem.ldc;
  args.m = static_cast<int>(problem.m);
  args.n = static_cast<int>(problem.n);
  args.k = static_cast<int>(problem.k);
  args.tiles_m = static_cast<int>(ceil_div(problem.m, block_m(config)));
  args.tiles_n = static_cast<int>(ceil_div(problem.n, block_n(config)));
  args.raster = raster(config);
  // A walk wider than there are tiles is as wide as there are; the device multiplies in 32 bits.
  args.swizzle = std::min(swizzle(config), args.raster != 0 ? args.tiles_m : args.tiles_n);
  args.alpha = static_cast<float>(problem.alpha);
  args.beta = static_cast<float>(problem.beta);

  LaunchPlan plan;
  static_assert(sizeof(args) <= sizeof(plan.params));
  std::memcpy(plan.params.data(), &args, sizeof(args));
  plan.params_size = sizeof(args);
  plan.grid[0] = static_cast<std::uint32_t>(grid_of(config, problem, max_sms));
  plan.block[0] = static_cast<std::uint32_t>(block.threads);
  plan.smem_bytes = static_cast<std::uint32_t>(block.smem_bytes);
  return plan;
}

std::vector<Definition> GemmTwin::definitions(const Config& config, const KernelTraits& traits,
                                              const DeviceSpec&) const {
  std::vector<Definition> list;
  auto define = [&list](std::string name, std::int64_t value) {
    list.emplace_back(std::move(name), std::to_string(value));
  };
  define("DTYPE", static_cast<int>(traits.dtype));  // common.cuh numbers them as DType does
  define("OUT_DTYPE", static_cast<int>(traits.out_dtype));
  define("A_K_MAJOR", a_is_k_major(traits.layout));
  define("B_K_MAJOR", b_is_k_major(traits.layout));
  define("HAS_BETA", traits.beta);
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

Work GemmTwin::work(const Config& config, const Problem& problem, const DeviceSpec& device) const {
  const KernelTraits traits = traits_of(problem);
  const double element = storage_bytes(problem.dtype);
  const double out = storage_bytes(problem.out_dtype);
  Work work;
  work.block_m = block_m(config);
  work.block_n = block_n(config);
  work.block_k = block_k(config);
  work.tiles_m = ceil_div(problem.m, work.block_m);
  work.tiles_n = ceil_div(problem.n, work.block_n);
  work.k_tiles = ceil_div(problem.k, work.block_k);
  work.raster_along_n = raster(config) != 0;
  work.swizzle = swizzle(config);
  const double m = static_cast<double>(work.block_m);
  const double n = static_cast<double>(work.block_n);
  const double k = static_cast<double>(work.block_k);
  work.flops_per_k_tile = 2.0 * m * n * k;
  work.load_bytes_per_k_tile = (m + n) * k * element;
  work.store_bytes_per_tile = m * n * out * (traits.beta ? 2.0 : 1.0);
  work.a_bytes = static_cast<double>(problem.m) * static_cast<double>(problem.k) * element;
  work.b_bytes = static_cast<double>(problem.n) * static_cast<double>(problem.k) * element;
  work.c_bytes = static_cast<double>(problem.m) * static_cast<double>(problem.n) * out *
                 (traits.beta ? 2.0 : 1.0);
  fill_work(config, traits, device, work);
  return work;
}

}  // namespace autotune::gemm

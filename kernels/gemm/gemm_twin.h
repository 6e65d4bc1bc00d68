// What the host twins of all GEMM kernels share: tiling, tile order, launch argument, definitions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/args.h"
#include "kernels/gemm/split_args.h"
#include "kernels/kernel.h"

namespace autotune::gemm {

// 2^64 / divisor, rounded up; 0 for 1.
Reciprocal reciprocal(std::int64_t divisor);

// Matrices that A is multiplied with: of each, block_n columns make a block's tile.
inline std::int32_t weights(const KernelTraits& traits) { return traits.gated ? 2 : 1; }

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Threads, shared memory and registers that one block asks for; bytes per block, registers per
// thread.
struct BlockNeeds {
  std::int64_t smem_bytes;
  std::int32_t threads;
  std::int32_t min_blocks;
  std::int32_t registers;        // estimate
  std::int32_t register_demand;  // live at once
  std::int32_t role_registers = 0;
  std::int32_t min_registers = Resources{}.min_registers;
  std::int32_t wgmma_columns = 0;
  std::int32_t barriers = 1;
};

// Whether all rows of A and B begin on 16 bytes.
inline bool has_aligned_rows(const KernelTraits& traits) {
  return traits.align_a == 16 && traits.align_b == 16;
}
// Why a kernel has nothing to do that serves other rows than those; empty where it has.
inline std::string no_unaligned_rows(const KernelTraits& traits) {
  return has_aligned_rows(traits) ? "is for rows of A or B that do not start on 16 bytes" : "";
}

// Of a product's transpose, whose operands are exchanged.
inline KernelTraits transposed(KernelTraits traits) {
  traits.layout = autotune::transposed(traits.layout);
  std::swap(traits.align_a, traits.align_b);
  return traits;
}

// Empty where mma.sync multiplies this type on the device, else why not.
std::string no_mma_sync(DType dtype, const DeviceSpec& device);
// The share of the tensor cores' peak that mma.sync can reach.
double mma_sync_rate(const DeviceSpec& device);

// Blocks that share their loads, along m and n.
struct ClusterShape {
  std::int32_t m = 1;
  std::int32_t n = 1;
  std::int32_t blocks() const { return m * n; }
};

// What shares the k tiles of one tile of C: the `parts` blocks of a cluster, or `groups` blocks
// through a workspace (the other number is 1). These wait for each other or, where not
// `cooperative`, leave all to the last.
struct SplitShape {
  std::int32_t parts = 1;
  std::int32_t groups = 1;
  bool cooperative = false;
};

// Marks of a workspace for tiles whose parts of k meet there. The last of all marks is for all
// blocks of a launch, where these copy operands first.
inline constexpr std::int64_t kTileMarks =
    kWorkspaceMarkBytes / std::int64_t{sizeof(std::uint32_t)} - 1;

// `split_k` parts of k through a workspace, less where some would be without a k tile, and only one
// where the `tiles` of all blocks are more than the workspace has marks for.
SplitShape workspace_split(std::int32_t split_k, std::int64_t tiles, std::int64_t k_tiles);
SplitArgs split_args(const SplitShape& split, std::int64_t k_tiles, const GemmArgs& args,
                     std::uint64_t workspace);

// Puts a kernel's argument into the plan.
template <typename Args>
void put_parameter(const Args& args, LaunchPlan& plan) {
  static_assert(sizeof(args) <= sizeof(plan.params));
  std::memcpy(plan.params.data(), &args, sizeof(args));
  plan.params_size = sizeof(args);
}

class GemmTwin : public HostTwin {
 public:
  Resources resources(const Config& config, const Problem& problem, const DeviceSpec& device,
                      int max_sms) const final;
  LaunchPlan launch_plan(const Config& config, const Problem& problem, const DeviceSpec& device,
                         const DevicePointers& pointers, int max_sms) const final;
  std::vector<Definition> definitions(const Config& config, const KernelTraits& traits,
                                      const DeviceSpec& device) const final;
  Work work(const Config& config, const Problem& problem, const DeviceSpec& device) const final;
  TileOrder tile_order(const Config& config) const final;
  void canonical(const Config& code, const Problem& problem,
                 std::span<TileOrder> orders) const final;

 protected:
  // The product whose tiles these are: `problem`, or its transpose. What is called with traits or a
  // problem below is called with the product's, but for those which say so.
  Problem product_of(Problem problem) const;
  KernelTraits product_of(const KernelTraits& traits) const {
    return transposes() ? transposed(traits) : traits;
  }
  virtual BlockNeeds needs(const Config& config, const KernelTraits& traits) const = 0;
  // Rows of C that the config serves at most; 0: any number. `problem` is as asked.
  virtual std::int64_t served_rows(const Config&, const Problem&) const { return 0; }
  virtual ClusterShape cluster(const Config&) const { return {}; }
  // True where tiles are of C's transpose, which B's transpose and A's make: its rows are columns
  // of C.
  virtual bool transposes() const { return false; }
  // The product with its operands as its tiles are loaded: where leading dimensions differ from
  // those of `problem`, the blocks copy the operand to the workspace first, and meet.
  virtual Problem loaded(const Problem& problem) const { return problem; }
  // Of the workspace, behind its marks: the sums of parts that meet there, then copied operands.
  std::int64_t sums_bytes(const Config& config, const Problem& problem) const;
  // `tiles` of C, of single blocks.
  virtual SplitShape split(const Config&, const Problem&, std::int64_t /*tiles*/) const {
    return {};
  }
  // True where one block per SM loops over the tiles.
  virtual bool persistent(const Config&) const { return false; }
  // k tiles by which a tile begins further along k than the one before.
  virtual std::int32_t stagger(const Config&) const { return 0; }
  // Constants of this kernel beside the traits and the compile-time parameters.
  virtual std::vector<Definition> layout_definitions(const Config& config,
                                                     const KernelTraits& traits) const = 0;
  // Fills unit, stages, warps and what happens inside one k tile.
  virtual void fill_work(const Config& config, const KernelTraits& traits, const DeviceSpec& device,
                         Work& work) const = 0;
  // For a kernel that has such an argument: the unit that each cluster of the plan's grid begins
  // with. After fill_parameter().
  virtual void put_first_units(const DeviceSpec&, LaunchPlan&) const {}
  // Puts the kernel's parameter into the plan: `args` itself, or a struct that holds it. `problem`
  // is the product of the one that is served.
  virtual void fill_parameter(const Config& config, const Problem& problem, const GemmArgs& args,
                              const SplitShape& split, std::uint64_t workspace,
                              LaunchPlan& plan) const;
};

// The parameters of every GEMM kernel begin with these three.
inline std::int32_t block_m(const Config& config) { return config.values[0]; }
inline std::int32_t block_n(const Config& config) { return config.values[1]; }
inline std::int32_t block_k(const Config& config) { return config.values[2]; }

// And these two, known at run time, last. What else is known at run time stands before them.
inline constexpr Parameter kRaster{"raster", 0,    1,
                                   0,        true, "consecutive blocks walk along m (0) or n (1)"};
inline constexpr Parameter kSwizzle{
    "swizzle", 1, 64, 4, true, "tiles of the other direction per walk, at most"};

// The parameter split_k is the one at `kIndex`.
template <int kIndex>
inline constexpr Constraint kWholeGates{
    "whole_gates", "gated, split_k must be 1: parts of k would add up the gates before they gate",
    [](const ParameterValuesArray& values, const KernelTraits& t) {
      return !t.gated || values[kIndex] == 1;
    },
    reads_of({kIndex})};

// Why a kernel that multiplies fp32 in parts, or not at all, does not serve an exact_fp32 problem.
inline constexpr const char* kExactByFfma = "--exact-fp32 asks for FFMA";
// Parts of fp32 leave out products that one multiply-add would round away together with much more;
// where it rounds once or twice only, they show.
inline constexpr std::int64_t kLeastKInParts = 16;

extern const HostTwin& wgmma_kernel;
extern const HostTwin& wgmma_swap_kernel;
extern const HostTwin& wgmma_pack_kernel;
extern const HostTwin& wgmma_fp32_kernel;
extern const HostTwin& mma_kernel;
extern const HostTwin& mma_bulk_kernel;
extern const HostTwin& simt_kernel;
extern const HostTwin& gemv_kernel;

}  // namespace autotune::gemm

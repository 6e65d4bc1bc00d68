// The host twin of a device kernel: everything about it that can be known without a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/config.h"
#include "kernels/device_source.h"
#include "kernels/device_spec.h"
#include "kernels/problem.h"
#include "kernels/resources.h"

namespace autotune {

// A structural constraint: a relation between parameters that the code needs to make sense at all.
struct Constraint {
  std::string_view name;  // "warps_divide_block_m"
  std::string_view text;  // "block_m must be a multiple of 16 x warps_m"
  bool (*holds)(const ParameterValuesArray& values, const KernelTraits& traits);
  // The parameters that `holds` looks at (see reads_of): a walk of the space that sets them one
  // after the other need not go on once they break it. All, where nothing is said.
  std::uint32_t reads = ~0u;
};

// A bit for each index.
constexpr std::uint32_t reads_of(std::initializer_list<int> parameters) {
  std::uint32_t bits = 0;
  for (const int parameter : parameters) bits |= 1u << parameter;
  return bits;
}

// A constant that the device source is compiled with: -Dname=value.
using Definition = std::pair<std::string, std::string>;

// One summand of a resource, for `explain`: "stages x (block_m + block_n) x block_k x 2" = 98304.
struct Term {
  std::string label;
  std::string expression;  // with the config's numbers filled in
  std::int64_t value;
};

// The order in which consecutive blocks walk over the tiles of C, and each over its k tiles.
struct TileOrder {
  bool raster_along_n = false;  // along n, else along m
  int swizzle = 1;              // tiles in the other direction that a walk covers, at most
  int stagger = 0;              // k tiles by which a tile begins further on than the one before

  // Tiles that each walk but the last covers, of `across` >= 1 in that direction: in as few walks
  // as may be, and these as even as that allows. A last walk over a few tiles only would share
  // little: 9 tiles by at most 8 go as 5 and 4.
  std::int64_t width(std::int64_t across) const {
    const std::int64_t walks = (across + swizzle - 1) / swizzle;
    return (across + walks - 1) / walks;
  }

  friend bool operator==(const TileOrder&, const TileOrder&) = default;
};

// What the performance model needs to know about the work, from host arithmetic alone.
struct Work {
  enum class Unit : std::uint8_t { tensor, ffma };
  Unit unit = Unit::tensor;
  double unit_rate = 1.0;  // share of the device's peak that this instruction can reach
  std::int64_t tiles_m = 0;
  std::int64_t tiles_n = 0;
  std::int64_t k_tiles = 0;  // per output tile
  std::int64_t block_m = 0;
  std::int64_t block_n = 0;
  std::int64_t block_k = 0;
  std::int64_t split_k = 1;       // blocks that share the k tiles of an output tile
  std::int64_t cluster_k = 1;     // as many where they are one cluster, else 1
  std::int64_t neighbours_k = 1;  // as many where they follow each other in the grid
  int cluster_m = 1;              // blocks that share loads, along m and n
  int cluster_n = 1;
  int stages = 1;
  int warps = 1;
  double flops_per_k_tile = 0;       // of one block, padding included
  double smem_bytes_per_k_tile = 0;  // read and written in shared memory by one block
  // Fetched from L2 or DRAM by one block; where what brings them is slower than the L2's port, as
  // many as that carries meanwhile.
  double load_bytes_per_k_tile = 0;
  double a_bytes_per_k_tile = 0;  // in whole lines of the L2, of one block
  double b_bytes_per_k_tile = 0;
  double a_piece_bytes = 0;  // side by side in memory: of one row of A, or column, in a k tile
  double b_piece_bytes = 0;
  std::int64_t load_piece_bytes = 0;        // that one request asks for; 0: a tile's whole row
  double load_instructions_per_k_tile = 0;  // copies that a warp issues
  double waits_per_k_tile = 0;  // of a warp for the L2, one after the other, whatever is under way
  double store_bytes_per_tile = 0;  // epilogue, C read included when beta != 0
  double packed_bytes = 0;          // of operands that are copied first
  double a_bytes = 0;               // whole operands, unpadded
  double b_bytes = 0;
  double c_bytes = 0;
  bool asynchronous = false;       // a warp of its own loads ahead, also for the next tile
  bool stores_then_loads = false;  // but hardly while this one is stored
  bool epilogue_overlaps = false;  // another tile multiplies while this one is stored
  TileOrder order;                 // HostTwin::tile_order of the config
};

// The first bytes of every workspace are marks by which the blocks of a launch find each other.
// They must be zero before a launch, and each launch leaves them so; the rest may hold anything.
// Launches that run one after another can share a workspace, also those of different kernels.
inline constexpr std::int64_t kWorkspaceMarkBytes = 64 * 1024;

// Launches of one stream of which the second reads as A what the first writes, and nothing else
// that the first writes.
enum class Link : std::uint8_t { none, ahead, behind };

struct DevicePointers {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;          // read where beta != 0, written always
  std::uint64_t workspace = 0;  // Resources::workspace_bytes
  std::uint64_t up = 0;         // of gated families: the second matrix of weights
  std::uint64_t down = 0;       // of the MLP: the weights of its second stage
  Link link = Link::none;
};

// A matrix as the tensor copy engine (TMA) sees it, and the box that one copy moves. The driver
// encodes it into the 128 bytes at `offset` of the kernel's parameter.
struct TensorMap {
  std::size_t offset = 0;
  DType element = DType::bf16;
  std::uint64_t address = 0;
  std::int64_t inner = 0;  // elements, in the contiguous direction
  std::int64_t outer = 0;
  std::int64_t pitch_bytes = 0;  // from row to row
  std::uint32_t box_inner = 0;   // elements
  std::uint32_t box_outer = 0;
  std::uint32_t swizzle_bytes = 0;  // 0, 32, 64 or 128

  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

// Everything cuLaunchKernelEx needs. `params` is the kernel's single struct parameter, by value.
struct LaunchPlan {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{1, 1, 1};
  std::uint32_t smem_bytes = 0;  // dynamic
  std::array<std::byte, 2304> params{};
  std::size_t params_size = 0;
  std::array<TensorMap, 16> maps{};
  std::size_t map_count = 0;
  // It may begin before the launch ahead of it on its stream has ended (programmatic dependent
  // launch): the kernel itself waits before it touches what that one writes.
  bool follows = false;
  // Its blocks wait for each other: none may begin before all can (cooperative launch).
  bool cooperative = false;

  friend bool operator==(const LaunchPlan&, const LaunchPlan&) = default;
};

class HostTwin {
 public:
  static constexpr std::size_t kRingParameters = 4;  // block_m, block_n, block_k, stages

  virtual ~HostTwin() = default;

  virtual std::string_view name() const = 0;
  // Entry point in the compiled source (extern "C").
  virtual std::string_view entry() const = 0;
  // The whole device source: self-contained, needs no include path.
  virtual DeviceSource source() const = 0;
  virtual std::span<const Parameter> parameters() const = 0;
  virtual std::span<const Constraint> constraints() const = 0;

  // Empty when the kernel can serve these traits on this device, else the reason in a few words.
  virtual std::string unsupported(const KernelTraits& traits, const DeviceSpec& device) const = 0;

  // Rows of C that any config serves at most; 0: any number. A config's own stands in Resources.
  virtual std::int64_t most_rows(const KernelTraits&) const { return 0; }
  // The least k that it serves: below, others round less.
  virtual std::int64_t least_k(const KernelTraits&) const { return 1; }

  // Exact but for the register estimate. Defined for every value inside lo..hi, also where a
  // structural constraint is broken (explain shows such configs too). `max_sms` > 0 caps the grid.
  virtual Resources resources(const Config& config, const Problem& problem,
                              const DeviceSpec& device, int max_sms) const = 0;
  // Of its shared memory what the first kRingParameters alone decide, at least: a walk of the space
  // that sets one parameter after the other need not go on where that is too much.
  virtual std::int64_t ring_bytes(const Config&, const KernelTraits&) const { return 0; }
  virtual std::vector<Term> smem_terms(const Config& config, const KernelTraits& traits) const = 0;
  virtual std::vector<Term> thread_terms(const Config& config) const = 0;
  virtual std::vector<Term> register_terms(const Config& config,
                                           const KernelTraits& traits) const = 0;

  virtual std::vector<Definition> definitions(const Config& config, const KernelTraits& traits,
                                              const DeviceSpec& device) const = 0;
  virtual LaunchPlan launch_plan(const Config& config, const Problem& problem,
                                 const DeviceSpec& device, const DevicePointers& pointers,
                                 int max_sms) const = 0;
  virtual Work work(const Config& config, const Problem& problem,
                    const DeviceSpec& device) const = 0;
  // All that run-time parameters decide: configs that differ in nothing else take the same
  // resources, break the same constraints and have the same work but for its order.
  virtual TileOrder tile_order(const Config& config) const = 0;
  // Replaces each order of a code by the one among all that walk over the problem's tiles just so:
  // a single row of tiles, for one, has but one order.
  virtual void canonical(const Config& code, const Problem& problem,
                         std::span<TileOrder> orders) const = 0;
};

// A kernel family: what is computed. Its kernels are the ways to compute it; one of several stages
// has none of its own, but the families of its stages.
struct Family {
  std::string_view name;
  std::string_view description;
  std::span<const HostTwin* const> kernels;
  std::span<const Family* const> stages = {};
};

std::span<const Family* const> families();
std::string family_names();                        // "gemm, geglu, geglu_mlp"
const Family* find_family(std::string_view name);  // nullptr where unknown
const HostTwin* find_kernel(const Family& family, std::string_view name);

// SHA-256 (hex) of everything that decides the compiled code: source, entry, definitions. With the
// architecture and the compiler's version it is the key of a cubin.
std::string source_hash(const Config& config, const KernelTraits& traits, const DeviceSpec& device);

}  // namespace autotune

// The host twin of wgmma_fp32, and its threads' way through shared memory, replayed on tiles as the
// copy engine writes them and as the matrix instruction reads them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/gemm/wgmma_fp32_map.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

constexpr unsigned kDepth = 32;  // of a k tile

struct Element {
  unsigned line;  // row of A or column of B
  unsigned k;
  friend bool operator==(const Element&, const Element&) = default;
};
using Tile = std::map<unsigned, Element>;  // by byte offset

unsigned swizzled(unsigned offset, unsigned mask) { return offset ^ (offset >> 7 & mask) << 4; }

// fp32 as the copy engine lays it out, in rows of 128 bytes.
Tile raw_tile(bool k_major, unsigned lines) {
  Tile tile;
  for (unsigned line = 0; line < (lines + 31) / 32 * 32; ++line) {
    if (k_major && line >= lines) break;
    for (unsigned k = 0; k < kDepth; ++k) {
      const unsigned offset =
          k_major ? line * 128 + k * 4 : line / 32 * 4096 + k * 128 + line % 32 * 4;
      tile[swizzled(offset, 7)] = {line, k};
    }
  }
  return tile;
}

unsigned bank(unsigned offset) { return offset / 4 % 32; }

TEST_CASE("wgmma_fp32's lanes find their fragments of A, and meet in no bank") {
  for (const bool k_major : {true, false}) {
    const Tile tile = raw_tile(k_major, 192);
    for (int first_row = 0; first_row < 192; first_row += 16) {
      for (int i = 0; i < 8; ++i) {
        const int step = i / 4;
        const int half = i / 2 % 2;
        const int lower = i % 2;
        std::vector<unsigned> offsets;  // in the order of lanes, both elements of each
        for (int lane = 0; lane < 32; ++lane) {
          const unsigned first = fp32_fragment(k_major, first_row, lane);
          for (int further = 0; further < 2; ++further) {
            offsets.push_back(fp32_fragment_element(k_major, first, step, half, lower, further));
            const auto row = static_cast<unsigned>(first_row + fp32_row_of_lane(lane) + lower * 8);
            const auto k = static_cast<unsigned>(step * 16 + half * 8 + lane % 4 * 2 + further);
            REQUIRE(tile.at(offsets.back()) == Element{row, k});
          }
        }
        // Reads of 8 bytes go by half warps, of 4 bytes by whole ones.
        for (std::size_t part = 0; part < 2; ++part) {
          std::set<unsigned> banks;
          for (std::size_t at = 0; at < 32; ++at) {
            banks.insert(bank(offsets[k_major ? part * 32 + at : at * 2 + part]));
          }
          CHECK(banks.size() == 32);
        }
      }
    }
  }
  std::set<int> rows;
  for (int lane = 0; lane < 32; lane += 4) rows.insert(fp32_row_of_lane(lane));
  CHECK(rows.size() == 8);
}

// What the cutting warps make of a tile of B, one part.
Tile cut_tile(bool k_major, unsigned columns) {
  const Tile raw = raw_tile(k_major, columns);
  Tile cut;
  for (unsigned group = 0; group * 256 < raw.size(); ++group) {
    for (int lane = 0; lane < 32; ++lane) {
      const unsigned source = group * 1024 + fp32_rows_source(lane);
      const unsigned target = group * 512 + fp32_rows_target(lane);
      for (unsigned i = 0; i < 8; ++i) {
        cut[target + i * 2] = raw.at((i < 4 ? source : source ^ 16) + i % 4 * 4);
      }
    }
  }
  CHECK(cut.size() == raw.size());
  return cut;
}

TEST_CASE("wgmma_fp32's parts of B lie where the instruction's descriptor says") {
  for (const bool k_major : {true, false}) {
    for (const unsigned columns : {8u, 24u, 64u, 80u, 160u}) {
      const Tile cut = cut_tile(k_major, columns);
      for (unsigned n = 0; n < columns; ++n) {
        for (unsigned k = 0; k < kDepth; ++k) {
          // Groups of 8 rows every 512 bytes, slabs of 32 columns every 2048.
          const unsigned offset = k_major ? n / 8 * 512 + n % 8 * 64 + k * 2
                                          : n / 32 * 2048 + k / 8 * 512 + k % 8 * 64 + n % 32 * 2;
          REQUIRE(cut.at(swizzled(offset, 3)) == Element{n, k});
        }
      }
    }
  }
}

TEST_CASE("wgmma_fp32's cutting lanes meet in no bank") {
  for (int quarter = 0; quarter < 4; ++quarter) {
    std::set<unsigned> sources;
    std::set<unsigned> others;
    std::set<unsigned> targets;
    for (int lane = quarter * 8; lane < quarter * 8 + 8; ++lane) {
      sources.insert(fp32_rows_source(lane) / 16 % 8);
      others.insert((fp32_rows_source(lane) ^ 16) / 16 % 8);
      targets.insert(fp32_rows_target(lane) / 16 % 8);
    }
    CHECK((sources.size() == 8 && others.size() == 8 && targets.size() == 8));
  }
}

Problem product(Layout layout, const char* family = "gemm") {
  Problem problem;
  problem.family = family;
  problem.m = 1000;
  problem.n = 2000;
  problem.k = 512;
  problem.dtype = problem.out_dtype = DType::fp32;
  problem.layout = layout;
  return checked(problem).value();
}

Config config_of(std::string_view text, const char* family = "gemm") {
  return parse_config(text, *find_family(family)).value();
}

DeviceSpec hopper() {
  DeviceSpec device;
  device.sm_count = 132;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  return device;
}

TEST_CASE("wgmma_fp32 loads copies of operands whose rows do not start on 16 bytes") {
  const Config config =
      parse_config("wgmma_fp32:block_m=64,block_n=64", *find_family("gemm")).value();
  Problem problem = product(Layout::tn);
  const auto plan_of = [&](const Problem& each) {
    DevicePointers pointers;
    pointers.a = 1 << 20;
    pointers.b = 2 << 20;
    pointers.workspace = 3 << 20;
    return config.kernel->launch_plan(config, each, hopper(), pointers, 0);
  };
  CHECK(config.kernel->resources(config, problem, hopper(), 0).workspace_bytes == 0);
  CHECK_FALSE(plan_of(problem).cooperative);

  problem.ldb = problem.k + 1;
  const std::int64_t pitch = (problem.k + 31) / 32 * 32 * 4;
  const Resources needs = config.kernel->resources(config, problem, hopper(), 0);
  CHECK(needs.workspace_bytes == kWorkspaceMarkBytes + problem.n * pitch);
  CHECK(needs.cooperative);
  const LaunchPlan plan = plan_of(problem);
  CHECK(plan.cooperative);
  CHECK(plan.maps[0].address == 1 << 20);
  CHECK(plan.maps[1].address == (3 << 20) + kWorkspaceMarkBytes);
  CHECK(plan.maps[1].pitch_bytes == pitch);
  const auto definitions = config.kernel->definitions(config, traits_of(problem), hopper());
  CHECK(std::count(definitions.begin(), definitions.end(), Definition{"PACKED", "1"}) == 1);
}

TEST_CASE("wgmma_fp32 serves fp32, and gates rows that start on 16 bytes") {
  const HostTwin& kernel = *find_kernel(*find_family("gemm"), "wgmma_fp32");
  KernelTraits traits = traits_of(product(Layout::nt));
  CHECK(kernel.unsupported(traits, hopper()).empty());
  CHECK_FALSE(kernel.unsupported(traits, {}).empty());
  traits.align_c = 4;
  traits.out_dtype = DType::bf16;
  CHECK(kernel.unsupported(traits, hopper()).empty());
  traits.align_a = 8;
  CHECK(kernel.unsupported(traits, hopper()).empty());
  traits.gated = true;
  CHECK_FALSE(kernel.unsupported(traits, hopper()).empty());
  traits.gated = false;
  traits.align_a = 16;
  traits.exact_fp32 = true;
  CHECK_FALSE(kernel.unsupported(traits, hopper()).empty());
  traits.exact_fp32 = false;
  traits.dtype = DType::tf32;
  CHECK_FALSE(kernel.unsupported(traits, hopper()).empty());
}

TEST_CASE("wgmma_fp32's resources and work, and what it hands to the copy engine") {
  const Config config = config_of(
      "wgmma_fp32:block_m=128,block_n=80,block_k=32,stages=4,cut_stages=3,chains=2,cutters=7");
  const Problem problem = product(Layout::nt);
  const Resources needs = config.kernel->resources(config, problem, hopper(), 0);
  CHECK(needs.threads == 512);  // two warpgroups that load and cut, two that multiply
  CHECK(needs.smem_bytes == 4 * (4 + 3) * 4096 + 3 * 3 * 3 * 2048 + 14 * 8 + 16);
  CHECK(needs.grid == 132);
  CHECK(needs.role_registers == 208);
  CHECK(needs.register_demand == 80 + 48 + 8);
  CHECK(needs.wgmma_columns == 40);

  const LaunchPlan plan = config.kernel->launch_plan(config, problem, hopper(), {1, 2, 3, 0}, 0);
  REQUIRE(plan.map_count == 2);
  const TensorMap& a = plan.maps[0];
  CHECK((a.inner == 1000 && a.outer == 512 && a.box_inner == 32 && a.box_outer == 32));
  CHECK((a.element == DType::fp32 && a.pitch_bytes == 4000 && a.swizzle_bytes == 128));
  CHECK(plan.maps[1].outer == 512);
  const TensorMap b =
      config.kernel->launch_plan(config, product(Layout::tn), hopper(), {1, 2, 3, 0}, 0).maps[1];
  CHECK((b.inner == 512 && b.outer == 2000 && b.box_inner == 32 && b.box_outer == 80));
  for (const TensorMap& map : {a, b}) CHECK(map.offset + 128 <= plan.params_size);

  const Work work = config.kernel->work(config, problem, hopper());
  CHECK(work.unit == Work::Unit::tensor);
  CHECK(work.unit_rate == Approx(1.0 / 6));
  CHECK(work.smem_bytes_per_k_tile ==
        6 * 2 * 80 * 32 * 2 + 4 * 4096 + 3 * (4096 + 3 * 2048) + (128 + 80) * 32 * 4);
}

TEST_CASE("gated, wgmma_fp32 loads and cuts the columns of both weights") {
  const Config config = config_of(
      "wgmma_fp32:block_m=128,block_n=40,block_k=32,stages=5,cut_stages=2,chains=2,cutters=3",
      "geglu");
  const Problem problem = product(Layout::tn, "geglu");
  const Resources needs = config.kernel->resources(config, problem, hopper(), 0);
  CHECK(needs.threads == 384);
  CHECK(needs.smem_bytes == 5 * (128 + 40 + 40) * 128 + 2 * 3 * (40 + 40) * 64 + 14 * 8 + 8);
  CHECK(needs.register_demand == 40 + 40 + 48 + 8);
  CHECK(needs.role_registers == 224);
  CHECK(needs.min_registers == 20 + 30);
  CHECK(needs.wgmma_columns == 40);  // a chain has the gates, the other their factors

  const LaunchPlan plan = config.kernel->launch_plan(config, problem, hopper(), {1, 2, 3, 0, 4}, 0);
  REQUIRE(plan.map_count == 3);
  const TensorMap& a = plan.maps[0];
  const TensorMap& gate = plan.maps[1];
  const TensorMap& up = plan.maps[2];
  CHECK((a.address == 1 && gate.address == 2 && up.address == 4));
  CHECK((a.box_outer == 128 && gate.box_outer == 40 && up.box_outer == 40));
  CHECK((up.inner == 512 && up.outer == 2000 && up.box_inner == 32 && up.pitch_bytes == 2048));
  CHECK(up.offset + 128 == plan.params_size);
  const Config plain = config_of(to_string(config));
  CHECK(plain.kernel->launch_plan(plain, product(Layout::tn), hopper(), {}, 0).params_size ==
        up.offset);

  const Work work = config.kernel->work(config, problem, hopper());
  CHECK(work.flops_per_k_tile == 2.0 * 128 * 80 * 32);
  CHECK(work.b_bytes == 2.0 * 2000 * 512 * 4);
  CHECK(work.smem_bytes_per_k_tile ==
        6 * 2 * 80 * 32 * 2 + 128 * 128 + 80 * (128 + 3 * 64) + (128 + 80) * 128);
}

bool fits(const Config& config, Layout layout, const char* family = "gemm") {
  const KernelTraits traits = traits_of(product(layout, family));
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, traits)) return false;
  }
  return true;
}

TEST_CASE("wgmma_fp32's chains split the columns where the instruction can begin") {
  CHECK(fits(config_of("wgmma_fp32:block_n=128,chains=2"), Layout::tn));
  CHECK(fits(config_of("wgmma_fp32:block_n=128,chains=2"), Layout::tt));
  CHECK(fits(config_of("wgmma_fp32:block_n=80,chains=2"), Layout::tn));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_n=80,chains=2"), Layout::tt));
  CHECK(fits(config_of("wgmma_fp32:block_n=80,chains=1"), Layout::tt));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_n=24,chains=2"), Layout::tn));
  CHECK(fits(config_of("wgmma_fp32:block_n=24,chains=2", "geglu"), Layout::tn, "geglu"));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_n=12,chains=1", "geglu"), Layout::tn, "geglu"));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_n=24,chains=2", "geglu"), Layout::tt, "geglu"));
  CHECK(fits(config_of("wgmma_fp32:block_n=64,chains=2", "geglu"), Layout::tt, "geglu"));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_m=96"), Layout::tn));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_m=256"), Layout::tn));
  CHECK_FALSE(fits(config_of("wgmma_fp32:block_k=64"), Layout::tn));
}

}  // namespace
}  // namespace autotune

// What wgmma's host twin hands to the copy engine, its grid, and what it serves.
#include "kernels/gemm/gemm_twin.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/wgmma_args.h"
#include "test/support/catch.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

TEST_CASE("wgmma hands the copy engine each operand as it lies, in boxes of 128 bytes") {
  Problem problem = product(1000, 2000);
  problem.k = 512;
  problem.lda = 512;
  problem.ldb = 2048;
  problem.ldc = 2000;
  problem.layout = Layout::tt;
  const LaunchPlan plan =
      plan_of(config_of("wgmma:block_m=128,block_n=192,block_k=64,cluster_m=2"), problem);
  REQUIRE(plan.map_count == 4);
  const TensorMap& a = plan.maps[0];
  CHECK(a.address == 1 << 20);
  CHECK((a.inner == 512 && a.outer == 1000 && a.pitch_bytes == 1024));
  CHECK((a.box_inner == 64 && a.box_outer == 128 && a.swizzle_bytes == 128));
  const TensorMap& b = plan.maps[1];  // contiguous along n; the two blocks load it by turns
  CHECK((b.inner == 2000 && b.outer == 512 && b.pitch_bytes == 4096));
  CHECK((b.box_inner == 64 && b.box_outer == 64 && b.swizzle_bytes == 128));
  const TensorMap& c = plan.maps[2];
  CHECK((c.inner == 2000 && c.outer == 1000 && c.pitch_bytes == 4000));
  CHECK((c.box_inner == 64 && c.box_outer == 16 && c.swizzle_bytes == 128));
  const TensorMap& edge = plan.maps[3];  // A's, whose last tile has 104 rows
  CHECK((edge.address == a.address && edge.outer == a.outer && edge.pitch_bytes == a.pitch_bytes));
  CHECK((edge.box_inner == 64 && edge.box_outer == 104 && edge.swizzle_bytes == 128));
  CHECK(edge.offset == offsetof(WgmmaArgs, map_a_edge));
  for (const TensorMap& map : plan.maps) CHECK(map.offset + 128 <= plan.params_size);
  CHECK(plan.cluster[0] == 2);
  CHECK(plan.grid[0] == 4 * 11 * 2);  // clusters of 256 x 192
}

TEST_CASE("wgmma stores C by half rows where whole ones leave no room for the last stage") {
  const auto stored = [](const std::string& config) {
    return plan_of(config_of("wgmma:block_k=64," + config), product(1024, 1536)).maps[2].box_inner;
  };
  CHECK(stored("block_m=192,block_n=192,stages=3,consumers=3") == 64);
  CHECK(stored("block_m=192,block_n=192,stages=4,consumers=3") == 32);
  CHECK(stored("block_m=128,block_n=192,stages=4,consumers=2,pingpong=1") == 64);
  CHECK(stored("block_m=128,block_n=192,stages=5,consumers=2,pingpong=1") == 32);
  CHECK(stored("block_m=128,block_n=128,stages=7,consumers=2") == 64);  // through a stage
}

TEST_CASE("wgmma_pack loads copies of the operands whose rows do not begin on 16 bytes") {
  Problem problem = product(300, 2000);
  problem.k = 515;
  problem.lda = 521;
  problem.ldb = 528;
  problem.ldc = 2000;
  const Config config = config_of("wgmma_pack:block_m=128,block_n=64,block_k=64");
  constexpr std::int64_t kPitch = 576 * 2;  // 515 elements in whole lines
  const auto needs = [&](const Problem& each) {
    return config.kernel->resources(config, each, DeviceSpec{}, 0);
  };
  CHECK(needs(problem).workspace_bytes == kWorkspaceMarkBytes + 300 * kPitch);
  CHECK(needs(problem).cooperative);

  const LaunchPlan plan = plan_of(config, problem);
  const LaunchPlan same = plan_of(config_of("wgmma:block_m=128,block_n=64,block_k=64"), problem);
  CHECK(plan.cooperative);
  const TensorMap& a = plan.maps[0];
  CHECK((a.inner == 515 && a.outer == 300 && a.pitch_bytes == kPitch));
  CHECK(a.address != same.maps[0].address);
  CHECK((plan.maps[1].address == same.maps[1].address && plan.maps[1].pitch_bytes == 1056));
  PackedWgmmaArgs args;
  REQUIRE(plan.params_size == sizeof(args));
  std::memcpy(&args, plan.params.data(), sizeof(args));
  CHECK(reinterpret_cast<std::uint64_t>(args.pack.a.from) == same.maps[0].address);
  CHECK(reinterpret_cast<std::uint64_t>(args.pack.a.to) == a.address);
  CHECK(a.address == reinterpret_cast<std::uint64_t>(args.split.workspace) + kWorkspaceMarkBytes);
  CHECK(
      (args.pack.a.rows == 300 && args.pack.a.row_bytes == 1030 && args.pack.a.from_pitch == 1042));
  CHECK((args.pack.a.strips == 1 && args.pack.b.rows == 0));

  // Both, behind the sums of parts that meet there; along k or not.
  problem.ldb = 527;
  const Config parts =
      config_of("wgmma_pack:block_m=128,block_n=64,block_k=64,cluster_n=2,split_k=2,consumers=2");
  const Resources both = parts.kernel->resources(parts, problem, DeviceSpec{}, 0);
  CHECK(both.workspace_bytes ==
        kWorkspaceMarkBytes + 3 * 32 * 2 * 128 * 64 * 4 + (300 + 2000) * kPitch);
  {
    const LaunchPlan copied = plan_of(parts, problem);
    PackedWgmmaArgs all;
    REQUIRE(copied.params_size == sizeof(all));
    std::memcpy(&all, copied.params.data(), sizeof(all));
    const auto workspace = reinterpret_cast<std::uint64_t>(all.split.workspace);
    const std::uint64_t behind_sums =
        workspace + kWorkspaceMarkBytes + std::uint64_t{3 * 32 * 2 * 128 * 64 * 4};
    CHECK(reinterpret_cast<std::uint64_t>(all.pack.a.to) == behind_sums);
    CHECK(reinterpret_cast<std::uint64_t>(all.pack.b.to) == behind_sums + 300 * kPitch);
    // The last of the marks, which is no tile's.
    CHECK(reinterpret_cast<std::uint64_t>(all.pack.mark) ==
          workspace + kWorkspaceMarkBytes - sizeof(unsigned));
  }
  problem.layout = Layout::nt;
  problem.lda = 301;
  problem.ldb = 2001;
  CHECK(needs(problem).workspace_bytes == kWorkspaceMarkBytes + 515 * (320 + 2048) * 2);

  DeviceSpec device;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  CHECK(config.kernel->unsupported(traits_of(problem), device).empty());
  problem.lda = 304;
  CHECK(config.kernel->unsupported(traits_of(problem), device).empty());
  problem.ldb = 2008;
  CHECK(config.kernel->unsupported(traits_of(problem), device).find("do not start on 16 bytes") !=
        std::string::npos);
  // And no sum overflows.
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = kMost;
  CHECK(needs(problem).workspace_bytes > std::int64_t{1} << 60);
}

TEST_CASE("one row of A is handed over as K-major, whatever its layout is called") {
  Problem problem = product(1, 2000);
  problem.k = 515;
  problem.layout = Layout::nt;
  problem.lda = 1;
  problem.ldb = problem.ldc = 2000;
  const Config config = config_of("wgmma:block_m=64,block_n=128,block_k=64");
  const LaunchPlan plan = plan_of(config, problem);
  CHECK((plan.maps[0].inner == 515 && plan.maps[0].outer == 1));
  CHECK(plan.maps[0].pitch_bytes == 520 * 2);
  CHECK((plan.maps[1].inner == 2000 && plan.maps[1].outer == 515));
  const auto as_tt = [](Problem p) {
    p.layout = Layout::tt;
    p.lda = 515;
    return p;
  };
  CHECK((plan_of(config, as_tt(problem)).params == plan.params));
  const DeviceSpec device;
  CHECK(config.kernel->work(config, problem, device).load_bytes_per_k_tile ==
        config.kernel->work(config, as_tt(problem), device).load_bytes_per_k_tile);
}

TEST_CASE("wgmma's clusters begin with tiles as their GPCs lie, where these are known") {
  const Problem problem = product(1024, 1536);
  const auto first_units = [&](const std::string& text, const DeviceSpec& device, int max_sms) {
    const LaunchPlan plan =
        config_of(text).kernel->launch_plan(config_of(text), problem, device, {}, max_sms);
    WgmmaArgs args;
    std::memcpy(&args, plan.params.data(), sizeof(args));
    const auto clusters = std::min<std::uint32_t>(plan.grid[0] / plan.cluster[0], args.kPlaced);
    return std::vector<int>(args.first_units, args.first_units + clusters);
  };
  DeviceSpec device;
  device.sm_count = 132;
  const std::string pairs = "wgmma:block_m=128,block_n=64,cluster_m=2,cluster_n=1,split_k=1";
  CHECK(first_units(pairs, device, 12) == std::vector<int>{0, 1, 2, 3, 4, 5});
  device.cluster_gpcs = {{2, {1, 0, 1, 0, 1, 0, 1}}};
  CHECK(first_units(pairs, device, 12) == std::vector<int>{3, 0, 4, 1, 5, 2});
  // 96 clusters that split k, seven of which run at once for all that is known.
  std::vector<int> all(WgmmaArgs::kPlaced);
  std::iota(all.begin(), all.end(), 0);
  const int seven[] = {3, 0, 4, 1, 5, 2, 6};
  std::copy(std::begin(seven), std::end(seven), all.begin());
  CHECK(first_units("wgmma:block_m=128,block_n=128,cluster_m=1,cluster_n=1,split_k=2", device, 0) ==
        all);
}

TEST_CASE("wgmma's tiles begin at a power of two of k tiles") {
  const auto starts = [](const std::string& config, std::int64_t m, std::int64_t k) {
    Problem problem = product(m, 14336);
    problem.k = problem.lda = problem.ldb = k;
    const LaunchPlan plan =
        plan_of(config_of("wgmma:block_m=64,block_n=112,block_k=64," + config), problem);
    WgmmaArgs args;
    std::memcpy(&args, plan.params.data(), sizeof(args));
    return std::pair<int, int>(args.gemm.starts + 1, args.gemm.stagger);
  };
  using Starts = std::pair<int, int>;
  CHECK(starts("stagger=0", 64, 4096) == Starts(1, 0));
  CHECK(starts("stagger=4", 64, 4096) == Starts(16, 4));
  CHECK(starts("stagger=24", 64, 4096) == Starts(2, 24));
  CHECK(starts("stagger=12", 64, 4096) == Starts(4, 12));
  CHECK(starts("stagger=12,split_k=2", 64, 4096) == Starts(2, 12));
  CHECK(starts("stagger=12,split_k=4", 64, 4096) == Starts(1, 0));
  CHECK(starts("stagger=1", 64, 1 << 20) == Starts(1024, 1));
  CHECK(starts("stagger=4", 128, 4096) == Starts(16, 4));
  CHECK(starts("stagger=4", 4096, 4096) == Starts(1, 0));  // many tiles share what each loads
}

TEST_CASE("wgmma's boxes have no more rows of A than there are, by eights") {
  const auto rows = [](std::int64_t m, const std::string& more) {
    const Config config = config_of("wgmma:block_m=128,block_n=128,block_k=64" + more);
    return plan_of(config, product(m, 2048)).maps[0].box_outer;
  };
  CHECK(rows(1, "") == 8);
  CHECK(rows(100, "") == 104);
  CHECK(rows(121, "") == 128);
  CHECK(rows(1000, "") == 128);
  CHECK(rows(20, ",cluster_m=2") == 24);
  CHECK(rows(20, ",cluster_n=2") == 24);
}

TEST_CASE("wgmma stores C in few pieces of a row, the last by a map of its own") {
  Problem problem = product(1024, 1024);
  const auto columns = [&](const std::string& block_n) {
    const Config config = config_of("wgmma:block_m=64,consumers=1,stages=3,block_n=" + block_n);
    const LaunchPlan plan = plan_of(config, problem);
    std::vector<std::uint32_t> boxes;
    for (std::size_t i = 0; i < plan.map_count; ++i) {
      const TensorMap& map = plan.maps[i];
      if (map.offset != offsetof(WgmmaArgs, map_c) && map.offset != offsetof(WgmmaArgs, map_c_rest))
        continue;
      CHECK(map.outer == 1024);
      CHECK(map.box_outer == 16);
      const std::uint32_t bytes = map.box_inner * storage_bytes(problem.out_dtype);
      CHECK(map.swizzle_bytes == (std::has_single_bit(bytes) && bytes > 16 ? bytes : 0));
      boxes.push_back(map.box_inner);
    }
    return boxes;
  };
  using Boxes = std::vector<std::uint32_t>;
  CHECK(columns("48") == Boxes{48});
  CHECK(columns("256") == Boxes{64});
  CHECK(columns("248") == Boxes{64, 56});
  CHECK(columns("200") == Boxes{64, 8});
  CHECK(columns("160") == Boxes{64, 32});
  problem.beta = 1;  // each element is stored once, so C can be read as well
  CHECK(columns("248") == Boxes{64, 56});
  problem.beta = 0;
  problem.out_dtype = DType::fp32;
  CHECK(columns("248") == Boxes{32, 24});
  CHECK(columns("40") == Boxes{32, 8});
}

TEST_CASE("C leaves through wgmma's ring where buffers of its own would not fit") {
  const auto bytes = [](const std::string& config, const char* family = "gemm") {
    Problem problem = product(128, 4096);
    problem.family = family;
    const auto whole = parse_config("wgmma:block_n=64," + config, *find_family(family));
    REQUIRE(whole);
    return whole->kernel->resources(*whole, problem, DeviceSpec{}, 0).smem_bytes;
  };
  const std::int64_t stage = (64 + 64) * 128 * 2;
  const std::int64_t buffers = 8 * 16 * 64 * 2;
  CHECK(bytes("block_m=64,block_k=128,consumers=1,stages=6") ==
        6 * stage + buffers + 8 * (2 * 6 + 2));
  CHECK(bytes("block_m=64,block_k=128,consumers=1,stages=7") == 7 * stage + 8 * (2 * 7 + 2));
  // Two consumers of one tile are done together; each warp that has but one store has one buffer.
  CHECK(bytes("block_m=128,block_k=64,consumers=2,stages=9") ==
        9 * (128 + 64) * 128 + 8 * (2 * 9 + 2));
  // Of two that take turns one still reads when the other stores.
  CHECK(bytes("block_m=64,block_k=128,consumers=2,pingpong=1,stages=7") > 7 * stage + 2 * buffers);
  // What a cluster's other parts give lies behind the ring all the same.
  CHECK(bytes("block_m=64,block_k=64,consumers=1,stages=14,split_k=2") ==
        14 * stage / 2 + 64 * 32 * 4 + 8 * (2 * 14 + 2 + 8));
}

TEST_CASE("wgmma's grid is one block per SM, in whole clusters; rows of C that TMA cannot write") {
  Problem large = product(8192, 8192);
  CHECK(plan_of(config_of("wgmma:block_m=128,block_n=128"), large).grid[0] == 132);
  CHECK(plan_of(config_of("wgmma:block_m=128,block_n=128,cluster_n=2"), large).grid[0] == 132);
  const Config config = config_of("wgmma:block_m=128,block_n=168");
  DeviceSpec odd;
  odd.sm_count = 131;
  CHECK(config.kernel->resources(config_of("wgmma:cluster_n=2"), large, odd, 0).grid == 130);
  odd.clustered_sms = 120;
  CHECK(config.kernel->resources(config_of("wgmma:cluster_m=2,cluster_n=4"), large, odd, 0).grid ==
        120);
  CHECK(plan_of(config_of("wgmma:block_m=128,block_n=128"), large).map_count == 3);
  large.n = large.ldc = 8190;
  CHECK(plan_of(config, large).map_count == 3);
  const TensorMap edge = plan_of(config, large).maps[2];  // of B: the last tile has 126 columns
  CHECK((edge.offset == offsetof(WgmmaArgs, map_b_edge) && edge.box_outer == 128));
  large.ldc = 8192;
  const LaunchPlan plan = plan_of(config, large);
  CHECK((plan.maps[2].box_inner == 64 && plan.maps[2].swizzle_bytes == 128));
  // The last of 168 columns, of which no swizzle is made.
  CHECK((plan.maps[3].box_inner == 40 && plan.maps[3].swizzle_bytes == 0));
}

TEST_CASE(
    "every map that wgmma hands to the copy engine has rows on 16 bytes, also of one row or "
    "column") {
  for (const char* text : {"wgmma:block_m=64,block_n=32", "wgmma_swap:block_m=64,block_n=32"}) {
    for (const int m : {1, 2, 8, 100, 129}) {
      for (const int n : {1, 2, 8, 100, 129}) {
        for (const DType out : {DType::bf16, DType::fp32}) {
          if (out == DType::fp32 && text[5] == '_') continue;  // swaps 16-bit types alone
          Problem problem = product(m, n);
          problem.k = problem.lda = problem.ldb = 1000;
          problem.ldc = n;
          problem.out_dtype = out;
          const Config config = config_of(text);
          const LaunchPlan plan = plan_of(config, problem);
          INFO(text << " " << m << "x" << n << " to " << to_string(out));
          bool stores_c = false;
          for (std::size_t i = 0; i < plan.map_count; ++i) {
            CHECK(plan.maps[i].pitch_bytes % 16 == 0);
            CHECK(plan.maps[i].inner > 0);
            if (plan.maps[i].offset == offsetof(WgmmaArgs, map_c)) stores_c = true;
          }
          CHECK(stores_c == (traits_of(problem).align_c == 16));  // as the device code has it
        }
      }
    }
  }
}

TEST_CASE("wgmma serves what the copy engine can load, and the family falls back to mma") {
  DeviceSpec hopper;
  hopper.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  const HostTwin& wgmma = *find_kernel(*find_family("gemm"), "wgmma");
  KernelTraits traits;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  CHECK_FALSE(wgmma.unsupported(traits, {}).empty());
  traits.align_c = 2;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  traits.align_b = 8;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
  traits.align_b = 16;
  traits.dtype = DType::tf32;
  CHECK(wgmma.unsupported(traits, hopper).empty());
  traits.layout = Layout::tt;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
  traits.dtype = DType::fp32;
  traits.layout = Layout::tn;
  CHECK_FALSE(wgmma.unsupported(traits, hopper).empty());
}

}  // namespace
}  // namespace autotune

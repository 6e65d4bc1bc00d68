// Parts of k on the host's side: of clusters and workspaces, of wgmma and of mma.
#include "kernels/gemm/gemm_twin.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/gemm/args.h"
#include "kernels/gemm/mma_args.h"
#include "kernels/gemm/split_args.h"
#include "kernels/gemm/wgmma_args.h"
#include "test/support/catch.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

Resources needs_of(const std::string& config, const Problem& problem) {
  DeviceSpec device;
  device.sm_count = 132;
  return config_of(config).kernel->resources(config_of(config), problem, device, 0);
}

std::string broken_by(const std::string& text) {
  const Config config = config_of(text);
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, KernelTraits{})) return std::string(constraint.name);
  }
  return "";
}

template <typename Args>
SplitArgs split_args_of(const std::string& config, const Problem& problem) {
  const LaunchPlan plan = plan_of(config_of(config), problem);
  Args args;
  REQUIRE(plan.params_size == sizeof(args));
  std::memcpy(&args, plan.params.data(), sizeof(args));
  return args.split;
}

TEST_CASE("wgmma's parts of k are one cluster up to 8, and meet in a workspace above") {
  const Problem problem = deep(256, 256, 65536);
  const std::string tile = "wgmma:block_m=128,block_n=128,block_k=64,split_k=";
  for (const int parts : {2, 3, 4, 5, 6, 7, 8}) {
    const Resources r = needs_of(tile + std::to_string(parts), problem);
    CHECK(r.cluster == parts);
    CHECK(r.grid == 4 * parts);
    CHECK(r.workspace_bytes == 0);
    CHECK_FALSE(r.cooperative);
  }
  for (const int parts : {9, 16, 64}) {
    const Resources r = needs_of(tile + std::to_string(parts), problem);
    CAPTURE(parts);
    CHECK(r.cluster == 1);
    CHECK(r.grid == 4 * parts);
    CHECK(r.workspace_bytes == 65536 + 4 * parts * 128 * 128 * 4);
    CHECK(r.cooperative);
  }
  // More blocks than SMs start as there is room.
  CHECK(needs_of(tile + "8", deep(4096, 4096, 4096)).grid == 8192);
}

TEST_CASE("wgmma's blocks of different tiles share loads, and their parts of k meet") {
  const Problem problem = deep(250, 256, 65536);
  const std::string tile = "wgmma:block_m=128,block_n=64,block_k=64,split_k=";
  for (const int parts : {2, 15}) {
    for (const int cluster_n : {2, 4}) {
      CAPTURE(parts, cluster_n);
      const std::string config =
          fmt::format("{}{},cluster_m=2,cluster_n={}", tile, parts, cluster_n);
      const Resources r = needs_of(config, problem);
      CHECK(r.cluster == 2 * cluster_n);
      CHECK(r.grid == 8 * parts);
      CHECK(r.workspace_bytes == 65536 + 8 * parts * 128 * 64 * 4);
      CHECK(r.cooperative);
      const LaunchPlan plan = plan_of(config_of(config), problem);
      CHECK(plan.cooperative);
      CHECK(plan.grid[0] == r.grid);
      CHECK(plan.cluster[0] == static_cast<std::uint32_t>(r.cluster));
      CHECK(split_args_of<WgmmaArgs>(config, problem).groups == parts);
    }
  }
  // Where k is too short for two parts there is nobody to wait for, but still no cut grid.
  const Resources whole = needs_of(tile + "2,cluster_m=2,cluster_n=2", deep(250, 256, 64));
  CHECK(whole.cooperative);
  CHECK(whole.grid == 8);
  CHECK(whole.workspace_bytes == 0);
}

TEST_CASE("parts of k are as many as there are k tiles, if no more are asked for") {
  const auto groups = [](std::int64_t k_tiles) {
    return split_args_of<SplitMmaArgs>("mma:block_m=64,block_n=64,block_k=32,split_k=4",
                                       deep(256, 256, 32 * k_tiles))
        .groups;
  };
  CHECK(groups(5) == 4);
  CHECK(groups(4) == 4);
  CHECK(groups(3) == 3);
  CHECK(groups(1) == 1);
}

TEST_CASE("parts that wait for each other lie tile by tile, others part by part") {
  const auto work = [](const char* text) {
    const Config config = config_of(text);
    return config.kernel->work(config, deep(256, 256, 65536), {});
  };
  CHECK(work("mma:block_m=64,block_n=64,split_k=4").neighbours_k == 4);
  CHECK(work("wgmma:block_m=128,block_n=128,split_k=4").neighbours_k == 4);  // a cluster
  CHECK(work("wgmma:block_m=128,block_n=128,split_k=16").neighbours_k == 1);
}

TEST_CASE("clusters have no barrier of a block's own, but where consumers meet") {
  const Problem problem = deep(256, 256, 65536);
  const auto barriers = [&](const std::string& text) { return needs_of(text, problem).barriers; };
  const std::string tile = "wgmma:block_m=128,block_n=64,block_k=64,";
  CHECK(barriers(tile + "cluster_n=1") == 1);
  CHECK(barriers(tile + "cluster_n=2") == 0);
  CHECK(barriers(tile + "split_k=4") == 0);
  CHECK(barriers(tile + "cluster_n=2,split_k=4") == 1);  // in the workspace
  CHECK(barriers("wgmma_pack:block_m=128,block_n=64,block_k=64,cluster_n=2") == 1);
}

TEST_CASE("a grid of blocks that wait for each other is never cut, and follows no other launch") {
  const Problem problem = deep(256, 256, 65536);
  DeviceSpec device;
  device.limits.cc = 90;
  device.sm_count = 132;
  DevicePointers pointers;
  pointers.link = Link::behind;
  const auto plan_with = [&](const char* text) {
    const Config config = config_of(text);
    return config.kernel->launch_plan(config, problem, device, pointers, 24);
  };
  const LaunchPlan waiting = plan_with("wgmma:block_m=128,block_n=128,split_k=16");
  CHECK(waiting.cooperative);
  CHECK(waiting.grid[0] == 64);
  CHECK_FALSE(waiting.follows);
  const LaunchPlan in_cluster = plan_with("wgmma:block_m=128,block_n=128,split_k=8");
  CHECK_FALSE(in_cluster.cooperative);
  CHECK(in_cluster.grid[0] == 24);
  CHECK(in_cluster.follows);
  const LaunchPlan last_adds = plan_with("mma:block_m=64,block_n=64,split_k=8");
  CHECK_FALSE(last_adds.cooperative);
  CHECK(last_adds.follows);
}

void check_parts(const std::string& text, const Problem& problem, int split,
                 const SplitArgs& args) {
  const Config config = config_of(text);
  const Work work = config.kernel->work(config, problem, {});
  const std::int64_t parts = work.split_k;
  CHECK(parts == work.cluster_k * args.groups);
  CHECK(parts <= split);
  CHECK(needs_of(text, problem).grid == parts);
  CHECK(args.part_steps * args.groups + args.longer_parts == work.k_tiles);
  CHECK(args.longer_parts < args.groups);
  CHECK((args.part_steps > 0 || args.groups == 1));
  CHECK((needs_of(text, problem).workspace_bytes > 0) == (args.groups > 1));
}

TEST_CASE("every k tile belongs to one part, and none is left without unless k is too short") {
  for (const std::int64_t k : {1, 64, 520, 576, 1000, 4096, 65536}) {
    for (const int split : {2, 3, 7, 8, 9, 12, 16, 64}) {
      CAPTURE(k, split);
      const std::string text =
          fmt::format("wgmma:block_m=64,block_n=64,block_k=64,split_k={}", split);
      const Problem problem = deep(64, 64, k);
      check_parts(text, problem, split, split_args_of<WgmmaArgs>(text, problem));
    }
  }
}

TEST_CASE("more tiles than the workspace has marks for go without it") {
  const std::string text = "wgmma:block_m=64,block_n=64,block_k=64,split_k=16";
  // 127 x 129 tiles have all marks but the last, which is for all blocks.
  CHECK(needs_of(text, deep(64 * 127, 64 * 129, 4096)).workspace_bytes ==
        65536 + 16383LL * 16 * 64 * 64 * 4);
  CHECK(needs_of(text, deep(64 * 128, 64 * 128, 4096)).workspace_bytes == 0);
  const Problem wider = deep(64 * 128, 64 * 128 + 1, 4096);
  const Resources r = needs_of(text, wider);
  CHECK(r.workspace_bytes == 0);
  CHECK(r.cooperative);  // so that the check refuses as many
  CHECK(r.grid == 128 * 129);
  CHECK(split_args_of<WgmmaArgs>(text, wider).groups == 1);
  // Marks are of blocks: a cluster of four needs as many.
  CHECK(needs_of(text + ",cluster_m=2,cluster_n=2", wider).workspace_bytes == 0);
  // And no sum overflows.
  CHECK(needs_of("wgmma:block_m=1,block_n=1,split_k=8", deep(kMost, kMost, 64)).grid ==
        std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("what splits k takes no turns, and in a cluster stores whole pieces of 8 columns") {
  const std::string tile = "wgmma:block_m=128,block_n=96,block_k=64,consumers=2,";
  CHECK(broken_by(tile + "split_k=4").empty());
  CHECK(broken_by(tile + "split_k=36").empty());
  CHECK(broken_by(tile + "split_k=9").empty());
  CHECK(broken_by(tile + "split_k=8") == "split_columns");
  CHECK(broken_by(tile + "split_k=16").empty());
  CHECK(broken_by(tile + "split_k=8,cluster_m=2").empty());  // which meet in the workspace
  CHECK(broken_by(tile + "split_k=2,cluster_m=2,cluster_n=4").empty());
  CHECK(broken_by(tile + "split_k=1,cluster_m=2,cluster_n=2").empty());
  CHECK(broken_by(tile + "split_k=2,pingpong=1") == "split_turns");
}

TEST_CASE("parts in a cluster have room for what the others give, and barriers for it") {
  const auto smem = [](const std::string& rest) {
    return needs_of("wgmma:block_m=128,block_n=256,block_k=64,consumers=2," + rest,
                    deep(128, 256, 4096))
        .smem_bytes;
  };
  const std::int64_t ring = 2 * (128 + 256) * 128;
  const std::int64_t rest = 8 * 2 * 16 * 128 + 8 * 6;  // store buffers and barriers
  CHECK(smem("stages=2,split_k=1") == ring + rest);
  const std::int64_t barriers = 8 * 2 * 8;  // two for each of 8 warps
  CHECK(smem("stages=2,split_k=2") == ring + rest + 128 * 128 * 4 + barriers);
  CHECK(smem("stages=2,split_k=4") == ring + rest + 3 * 128 * 64 * 4 + barriers);
  CHECK(smem("stages=2,split_k=9") == ring + rest);  // every part by itself
  CHECK(smem("stages=2,split_k=2,cluster_n=2") == ring + rest);
  const Config config = config_of("wgmma:block_m=128,block_n=256,block_k=64,stages=2,split_k=2");
  const std::vector<Term> terms = config.kernel->smem_terms(config, KernelTraits{});
  std::int64_t sum = 0;
  for (const Term& term : terms) {
    if (term.label != "total") sum += term.value;
  }
  CHECK(sum == terms.back().value);
  CHECK(sum == smem("stages=2,split_k=2"));
  // A slice of 32 columns is stored in rows of 64 bytes.
  const Config narrow = config_of("wgmma:block_m=128,block_n=256,block_k=64,split_k=8");
  CHECK(plan_of(narrow, deep(128, 256, 4096)).maps[2].box_inner == 32);
  CHECK(plan_of(narrow, deep(128, 256, 4096)).maps[2].swizzle_bytes == 64);
}

TEST_CASE("mma's parts of k are blocks of their own that share a workspace") {
  const std::string tile = "mma:block_m=32,block_n=64,block_k=32,split_k=";
  const Problem problem = deep(100, 512, 1524);
  const Resources whole = needs_of(tile + "1", problem);
  CHECK(whole.grid == 4 * 8);
  CHECK(whole.workspace_bytes == 0);
  CHECK(plan_of(config_of(tile + "1"), problem).params_size == sizeof(GemmArgs));
  for (const int parts : {2, 3, 8, 16}) {
    CAPTURE(parts);
    const std::string text = tile + std::to_string(parts);
    const Resources r = needs_of(text, problem);
    CHECK(r.cluster == 1);
    CHECK(r.grid == 4 * 8 * parts);
    CHECK(r.workspace_bytes == 65536 + 4 * 8 * parts * 32 * 64 * 4);
    CHECK(r.smem_bytes == whole.smem_bytes);
    const Config config = config_of(text);
    const LaunchPlan plan = config.kernel->launch_plan(config, problem, {}, {0, 0, 0, 4096}, 0);
    CHECK(plan.grid[0] == r.grid);
    SplitMmaArgs args;
    REQUIRE(plan.params_size == sizeof(args));
    std::memcpy(&args, plan.params.data(), sizeof(args));
    CHECK(args.k == 1524);
    CHECK(args.split.workspace == reinterpret_cast<void*>(4096));
    const Work work = config.kernel->work(config, problem, {});
    CHECK(work.split_k == parts);
    CHECK(work.cluster_k == 1);
  }
  for (const std::int64_t k : {1, 32, 65, 100, 1000, 65536}) {
    for (const int split : {2, 3, 8, 16}) {
      CAPTURE(k, split);
      const std::string text = tile + std::to_string(split);
      check_parts(text, deep(32, 64, k), split, split_args_of<SplitMmaArgs>(text, deep(32, 64, k)));
    }
  }
  const Config config = config_of(tile + "4");
  CHECK(config.kernel->resources(config, problem, {}, 7).grid == 7);
}

TEST_CASE("mma splits no k of more tiles than the workspace has marks for") {
  const std::string text = "mma:block_m=64,block_n=64,block_k=64,split_k=4";
  CHECK(needs_of(text, deep(64 * 127, 64 * 129, 4096)).workspace_bytes ==
        65536 + std::int64_t{16383} * 4 * 64 * 64 * 4);
  const Problem more = deep(64 * 128, 64 * 128 + 1, 4096);
  CHECK(needs_of(text, more).workspace_bytes == 0);
  CHECK(needs_of(text, more).grid == 128 * 129);
  CHECK(split_args_of<SplitMmaArgs>(text, more).groups == 1);
}

}  // namespace
}  // namespace autotune

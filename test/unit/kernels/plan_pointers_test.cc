#include "kernels/plan_pointers.h"

#include <cstring>

#include "kernels/stages.h"
#include "test/support/catch.h"

namespace autotune {
namespace {

constexpr DevicePointers kBase{1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20, 6 << 20};
constexpr DevicePointers kOthers{0x7f00'0000'0000, 0x7e12'3456'7890, 0x7d00'0000'0010,
                                 0x7c00'0000'0000, 0x7b00'0000'0100, 0x7a00'0000'0000};

DeviceSpec hopper() {
  DeviceSpec device;
  device.limits.cc = 90;
  device.sm_count = 132;
  return device;
}

Problem problem_of(const char* family, std::int64_t m, std::int64_t n, std::int64_t k,
                   DType dtype) {
  Problem problem;
  problem.family = family;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.dtype = dtype;
  problem.out_dtype = default_out_dtype(dtype);
  if (problem.family != "gemm") problem.activation = Activation::silu;
  const auto whole = checked(problem);
  REQUIRE(whole);
  return *whole;
}

void check_moved(const char* text, const Problem& problem) {
  INFO(text << " for " << describe(problem));
  const auto config = parse_config(text, *find_family(problem.family));
  REQUIRE(config);
  const StageWorkspace workspace = workspace_of(*config, problem, hopper(), 0);
  for (std::size_t stage = 0; stage < stage_count(problem); ++stage) {
    const auto plan_for = [&](const DevicePointers& at) {
      return stage_launch(*config, problem, stage, hopper(), at, workspace, 0);
    };
    const auto pointers = pointers_of(plan_for, kBase);
    REQUIRE(pointers);
    LaunchPlan moved = plan_for(kBase);
    const LaunchPlan expected = plan_for(kOthers);
    REQUIRE(moved.params != expected.params);
    for (std::size_t i = 0; i < moved.map_count; ++i) {
      CHECK(moved.maps[i].offset % 64 == 0);  // maps are encoded where they stand
      CHECK(moved.maps[i].offset + 128 <= moved.params_size);
    }
    put_words(*pointers, kOthers, moved.params);
    for (const PlacedPointer& place : pointers->maps) {
      moved.maps[place.at].address = place.of(kOthers);
    }
    CHECK(moved == expected);
  }
}

TEST_CASE("every kernel's plan for other pointers is the same with these in their places") {
  const Problem even = problem_of("gemm", 300, 512, 2048, DType::bf16);
  const Problem odd = problem_of("gemm", 300, 511, 2047, DType::bf16);
  for (const char* text :
       {"wgmma:block_m=64,block_n=128,stages=4", "wgmma:block_m=64,block_n=64,stages=4,split_k=4",
        "wgmma:block_m=64,block_n=64,stages=4,cluster_m=2",
        "wgmma_swap:block_m=64,block_n=32,stages=4", "mma", "mma:split_k=2", "simt", "gemv",
        "mma_bulk:block_m=16,block_n=32,block_k=512"}) {
    check_moved(text, even);
  }
  for (const char* text : {"wgmma_pack:block_m=64,block_n=128,stages=4", "mma",
                           "mma_bulk:block_m=16,block_n=32,block_k=512",
                           "mma_bulk:block_m=64,block_n=64,block_k=128,stages=2,boxes=1"}) {
    check_moved(text, odd);
  }
  check_moved("wgmma_fp32:block_m=64,block_n=32", problem_of("gemm", 300, 512, 2048, DType::fp32));
  check_moved("wgmma:block_m=64,block_n=64,stages=4",
              problem_of("geglu", 300, 512, 2048, DType::bf16));
}

TEST_CASE("the pointers of an MLP's stages are found in the whole's") {
  check_moved("wgmma:block_m=64,block_n=64,stages=4 + mma:split_k=4",
              problem_of("geglu_mlp", 100, 1536, 512, DType::bf16));
}

TEST_CASE("a plan in which a pointer decides more than addresses has no places for it") {
  const auto with_word = [](std::uint64_t word) {
    LaunchPlan plan;
    plan.params_size = 16;
    std::memcpy(plan.params.data() + 8, &word, sizeof(word));
    return plan;
  };
  const auto by_sum = [&](const DevicePointers& at) { return with_word(at.a + 96); };
  const auto found = pointers_of(by_sum, kBase);
  REQUIRE(found);
  REQUIRE(found->words.size() == 1);
  CHECK(found->words[0].at == 8);
  CHECK(found->words[0].added == 96);
  CHECK_FALSE(pointers_of([&](const DevicePointers& at) { return with_word(at.a + at.b); }, kBase));
  CHECK_FALSE(pointers_of(
      [&](const DevicePointers& at) {
        LaunchPlan plan = by_sum(at);
        plan.grid[0] = at.c == kBase.c ? 1 : 2;
        return plan;
      },
      kBase));
  CHECK_FALSE(pointers_of(
      [&](const DevicePointers& at) {
        LaunchPlan plan = by_sum(at);
        plan.params[3] = std::byte(at.down == kBase.down);
        return plan;
      },
      kBase));
  CHECK_FALSE(pointers_of(
      [&](const DevicePointers& at) {
        LaunchPlan plan = by_sum(at);
        plan.map_count = 1;
        plan.maps[0].address = 2 * at.up;
        return plan;
      },
      kBase));
}

}  // namespace
}  // namespace autotune

// What a GEMM's host twin hands to the device at the far end of its dimensions. (Its resources are
// tested in test/unit/search, its layout against the device source in test/compile.)
#include "kernels/gemm/gemm_twin.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/gemm/args.h"
#include "test/support/catch.h"
#include "test/support/problems.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

GemmArgs args_of(const Config& config, const Problem& problem) {
  const LaunchPlan plan = config.kernel->launch_plan(config, problem, {}, {}, 0);
  GemmArgs args;
  REQUIRE(plan.params_size == sizeof(args));
  std::memcpy(&args, plan.params.data(), sizeof(args));
  return args;
}

TEST_CASE("a walk is never wider than there are tiles, so that a group's tiles count in 32 bits") {
  const Config along_m = config_of("mma:block_m=16,block_n=16,raster=0,swizzle=64");
  const GemmArgs tall = args_of(along_m, product(kMost, 1));
  CHECK(tall.tiles_m == 134217728);
  CHECK(tall.swizzle == 1);
  CHECK(args_of(along_m, product(160, 1024)).swizzle == 64);
  CHECK(args_of(along_m, product(160, 1600)).swizzle == 50);
  const Config along_n = config_of("simt:block_m=16,block_n=16,raster=1,swizzle=64");
  CHECK(args_of(along_n, product(160, 1600)).swizzle == 10);
}

TEST_CASE("walks over tiles are as few as may be, and as even as that allows") {
  const auto width = [](int at_most, std::int64_t across) {
    return TileOrder{false, at_most}.width(across);
  };
  CHECK(width(8, 16) == 8);
  CHECK(width(8, 9) == 5);
  CHECK(width(8, 17) == 6);
  CHECK(width(4, 5) == 3);
  CHECK(width(4, 13) == 4);  // three walks of 4 and one of 1: only the last may differ
  CHECK(width(64, 3) == 3);
  CHECK(width(1, 7) == 1);
  for (const int at_most : {1, 2, 3, 4, 7, 8, 16, 64}) {
    for (std::int64_t across = 1; across < 200; ++across) {
      const std::int64_t wide = width(at_most, across);
      CAPTURE(at_most, across, wide);
      CHECK((wide >= 1 && wide <= at_most));
      const std::int64_t walks = (across + at_most - 1) / at_most;
      CHECK((across + wide - 1) / wide == walks);
      if (wide > 1) CHECK((across + wide - 2) / (wide - 1) > walks);
    }
  }
}

TEST_CASE("the reciprocals of the tile order divide exactly") {
  const auto check = [](Reciprocal reciprocal, std::uint64_t divisor, std::uint32_t value) {
    const auto product = static_cast<unsigned __int128>(reciprocal) * value;
    const auto quotient = reciprocal == 0 ? value : static_cast<std::uint32_t>(product >> 64);
    CAPTURE(divisor, value);
    CHECK(quotient == value / divisor);
  };
  for (const std::int64_t m : {16, 48, 1600, 112016, 1 << 30}) {
    for (const int swizzle : {1, 2, 3, 7, 8, 16, 64}) {
      const std::string text =
          fmt::format("mma:block_m=16,block_n=16,raster=0,swizzle={}", swizzle);
      const GemmArgs args = args_of(config_of(text), product(m, 1040));
      const std::uint64_t group = std::uint64_t{1} * args.tiles_m * args.swizzle;
      for (const std::uint64_t near : {group, 2 * group, 17 * group, std::uint64_t{1} << 31}) {
        for (const int off : {-1, 0, 1}) {
          const auto value = static_cast<std::uint32_t>(near + off);
          check(args.of_group, group, value);
          check(args.of_step, args.swizzle, value);
          const int last = args.tiles_n % args.swizzle;
          if (last != 0) check(args.of_last_step, last, value);
        }
      }
    }
  }
}

TEST_CASE("what is shown of a register estimate adds up to it") {
  const auto check = [](const Config& config, const Problem& problem) {
    const KernelTraits traits = traits_of(problem);
    std::int64_t sum = 0;
    for (const Term& term : config.kernel->register_terms(config, traits)) {
      CAPTURE(config.kernel->name(), describe(problem));
      if (term.label == "estimate") {
        CHECK(term.value == sum);
        CHECK(term.value == config.kernel->resources(config, problem, {}, 0).registers);
        return;
      }
      sum += term.value;
    }
    FAIL("no estimate");
  };
  for (const char* kernel : {"mma", "mma_bulk", "gemv", "simt"}) {
    const Config config = config_of(kernel);
    for (const std::int64_t k : {512, 514, 513}) {  // rows begin on 16, 4 and 2 bytes
      for (const DType dtype : test::kAllDTypes) check(config, test::gemm(100, 200, k, dtype));
    }
  }
}

TEST_CASE("--max-sms shortens the grid, but not to hide more tiles than 32 bits count") {
  const Config config = config_of("mma:block_m=16,block_n=16");
  const auto grid = [&](const Problem& problem, int max_sms) {
    return config.kernel->resources(config, problem, {}, max_sms).grid;
  };
  CHECK(grid(product(160, 160), 0) == 100);
  CHECK(grid(product(160, 160), 8) == 8);
  CHECK(grid(product(16, 16), 8) == 1);
  CHECK(grid(product(kMost, kMost), 8) == grid(product(kMost, kMost), 0));
  CHECK(grid(product(kMost, kMost), 8) > kMost);
}

TEST_CASE("fp32 in parts of bf16 is for sixteen products at least") {
  KernelTraits traits;
  CHECK(config_of("mma").kernel->least_k(traits) == 1);
  traits.dtype = traits.out_dtype = DType::fp32;
  CHECK(config_of("mma").kernel->least_k(traits) == 16);
}

TEST_CASE("a single line of tiles has one order, along m or along n") {
  const Config config = config_of("mma:block_m=16,block_n=16");
  for (const Problem& problem : {product(16, 1600), product(1600, 16)}) {
    TileOrder orders[] = {{false, 1, 0}, {true, 1, 0}, {false, 8, 0}, {true, 8, 0}};
    config.kernel->canonical(config, problem, orders);
    for (const TileOrder& order : orders) CHECK(order == orders[0]);
  }
}

}  // namespace
}  // namespace autotune

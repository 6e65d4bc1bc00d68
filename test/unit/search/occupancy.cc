// The one test that includes cuda_occupancy.h: plain C++ of the toolkit that needs no GPU.
#include "search/occupancy.h"

#include <cuda_occupancy.h>
#include <fmt/format.h>
#include <climits>

#include <fstream>
#include <sstream>

#include "autotune/io/builtin.h"
#include "search/draw.h"
#include "test/support/catch.h"

namespace autotune::search {
namespace {

struct Input {
  int threads = 0;
  int registers = 0;
  int dynamic_smem = 0;
  int static_smem = 0;
  int barriers = 0;
};

cudaOccDeviceProp properties_of(const ArchLimits& limits) {
  cudaOccDeviceProp p;
  p.computeMajor = limits.cc / 10;
  p.computeMinor = limits.cc % 10;
  p.maxThreadsPerBlock = limits.threads_per_block;
  p.maxThreadsPerMultiprocessor = limits.threads_per_sm;
  p.regsPerBlock = limits.registers_per_block;
  p.regsPerMultiprocessor = limits.registers_per_sm;
  p.warpSize = 32;
  p.sharedMemPerBlock = 49152;
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(limits.smem_per_sm);
  p.numSms = 1;
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(limits.smem_optin_per_block);
  p.reservedSharedMemPerBlock = static_cast<std::size_t>(limits.smem_reserved_per_block);
  return p;
}

// The header's answer; `variant` goes through the settings that must not matter here.
int truth(const ArchLimits& limits, const Input& in, std::uint64_t variant) {
  const cudaOccDeviceProp properties = properties_of(limits);
  cudaOccFuncAttributes function;
  function.maxThreadsPerBlock = variant & 1 ? INT_MAX : limits.threads_per_block;
  function.numRegs = in.registers;
  function.sharedSizeBytes = static_cast<std::size_t>(in.static_smem);
  function.partitionedGCConfig = static_cast<cudaOccPartitionedGCConfig>((variant >> 1) % 3);
  function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  // The attribute is set to what the launch needs, or once to all that the opt-in allows.
  const auto rest = limits.smem_optin_per_block - in.static_smem;
  function.maxDynamicSharedSizeBytes =
      static_cast<std::size_t>((variant >> 3) & 1 && rest > 0 ? rest : in.dynamic_smem);
  function.numBlockBarriers = in.barriers;
  cudaOccDeviceState state;
  state.cacheConfig = (variant >> 4) & 1 ? CACHE_PREFER_SHARED : CACHE_PREFER_NONE;
  state.carveoutConfig = (variant >> 5) & 1 ? 100 : -1;
  cudaOccResult result{};
  const cudaOccError error =
      cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &function, &state, in.threads,
                                              static_cast<std::size_t>(in.dynamic_smem));
  REQUIRE(error == CUDA_OCC_SUCCESS);
  return result.activeBlocksPerMultiprocessor;
}

int ours(const ArchLimits& limits, const Input& in) {
  return blocks_per_sm(limits, in.threads, in.registers, in.dynamic_smem, in.static_smem,
                       in.barriers);
}

void compare(const ArchLimits& limits, const Input& in, std::uint64_t variant) {
  const int expected = truth(limits, in, variant);
  const int got = ours(limits, in);
  if (got == expected) return;
  FAIL(fmt::format("cc {} threads {} registers {} smem {}+{} barriers {}: {} blocks, not {}",
                   limits.cc, in.threads, in.registers, in.dynamic_smem, in.static_smem,
                   in.barriers, expected, got));
}

}  // namespace

TEST_CASE("blocks per SM equal cuda_occupancy.h on random inputs of every compute capability") {
  constexpr int kPerCapability = 20000;
  REQUIRE(io::known_capabilities().size() >= 11);
  Random random(20250101);
  std::int64_t compared = 0;
  std::int64_t running = 0;
  for (const ArchLimits& limits : io::known_capabilities()) {
    for (int i = 0; i < kPerCapability; ++i) {
      Input in;
      in.threads = 1 + static_cast<int>(random.below(i % 4 == 0 ? 1200 : 512));
      in.registers = static_cast<int>(random.below(i % 4 == 1 ? 300 : 128));
      const auto top = static_cast<std::uint64_t>(limits.smem_optin_per_block + 4096);
      // Small sizes, where several blocks fit, as often as those around the limit.
      in.dynamic_smem = static_cast<int>(random.below(top) >> random.below(8));
      in.static_smem = i % 2 == 0 ? 0 : static_cast<int>(random.below(49153) >> random.below(8));
      in.barriers = static_cast<int>(random.below(17));
      compare(limits, in, random.next());
      running += ours(limits, in) > 0 ? 1 : 0;
      ++compared;
    }
  }
  CHECK(compared >= 100000);
  CHECK(running > compared / 2);
}

TEST_CASE("blocks per SM equal cuda_occupancy.h around every limit") {
  for (const ArchLimits& limits : io::known_capabilities()) {
    for (const int threads : {1, 31, 32, 33, 128, 288, 1023, 1024, 1025}) {
      for (const int registers : {0, 1, 8, 9, 32, 64, 65, 128, 168, 224, 255, 256, 257}) {
        for (const std::int64_t edge :
             {std::int64_t{0}, std::int64_t{49152}, limits.smem_optin_per_block,
              limits.smem_per_sm / 2 - limits.smem_reserved_per_block, limits.smem_per_sm}) {
          for (const int delta : {-129, -1, 0, 1, 129}) {
            if (edge + delta < 0) continue;
            const Input in{threads, registers, static_cast<int>(edge) + delta, 0, 1};
            compare(limits, in, 0);
            compare(limits, in, 8);
          }
        }
      }
    }
  }
}

TEST_CASE("blocks per SM of the recorded vectors") {
  std::ifstream file(AUTOTUNE_SOURCE_DIR "/test/data/occupancy_vectors.csv");
  REQUIRE(file);
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    std::istringstream fields(line);
    int major = 0, minor = 0, threads = 0, registers = 0, smem = 0, blocks = -1;
    char c = 0;
    fields >> major >> c >> minor >> c >> threads >> c >> registers >> c >> smem >> c >> blocks;
    REQUIRE(fields);
    INFO(line);
    const ArchLimits* limits = io::find_capability(major * 10 + minor);
    REQUIRE(limits != nullptr);
    CHECK(blocks_per_sm(*limits, threads, registers, smem, 0) == blocks);
    ++rows;
  }
  CHECK(rows == 6);
}

TEST_CASE("register caps are those that ptxas 13.0 keeps") {
  const auto cap = [](int cc, int threads, int min_blocks) {
    return launch_register_cap(*io::find_capability(cc), threads, min_blocks);
  };
  CHECK(cap(90, 32, 1) == 255);
  CHECK(cap(90, 256, 1) == 255);
  for (const int threads : {288, 320, 352, 384}) CHECK(cap(90, threads, 1) == 168);
  for (const int threads : {416, 512}) CHECK(cap(90, threads, 1) == 128);
  for (const int threads : {544, 640}) CHECK(cap(90, threads, 1) == 96);
  CHECK(cap(90, 1024, 1) == 64);
  CHECK(cap(90, 128, 8) == 64);
  // Blocks that are no multiple of 128 threads share sub-partitions.
  CHECK(cap(90, 160, 3) == 128);
  CHECK(cap(86, 96, 5) == 128);
  CHECK(cap(120, 64, 12) == 80);
  CHECK(cap(90, 64, 16) == 64);
  // What the SM has no slots for is ignored.
  CHECK(cap(90, 1024, 2) == 32);
  CHECK(cap(86, 1024, 2) == 64);
  CHECK(cap(75, 1024, 2) == 64);
  CHECK(cap(86, 32, 32) == 255);
}

TEST_CASE("a block compiled to its register cap always launches") {
  for (const ArchLimits& limits : io::known_capabilities()) {
    for (int threads = 1; threads <= 1024; ++threads) {
      const int cap = launch_register_cap(limits, threads, 1);
      REQUIRE(registers_of_block(limits, threads, cap) <= limits.registers_per_block);
      REQUIRE(blocks_per_sm(limits, threads, cap, 0, 0) >= 1);
      if (cap < limits.registers_per_thread) {
        REQUIRE(registers_of_block(limits, threads, cap + 1) > limits.registers_per_block);
      }
    }
  }
}

}  // namespace autotune::search

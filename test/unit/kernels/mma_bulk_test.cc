// What mma_bulk says of itself: whom it serves, what it takes, what it launches.
#include <string>
#include <string_view>

#include "kernels/gemm/gemm_twin.h"
#include "kernels/problem.h"
#include "test/support/catch.h"
#include "test/support/problems.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

const HostTwin& mma_bulk() { return *find_kernel(*find_family("gemm"), "mma_bulk"); }

constexpr const char* kTile =
    "mma_bulk:block_m=32,block_n=64,block_k=192,stages=2,warps_m=1,warps_n=2,warps_k=4,";

DeviceSpec device_with(Feature feature) {
  DeviceSpec device;
  device.sm_count = 132;
  device.limits.features = static_cast<std::uint32_t>(feature);
  device.limits.mma_dtypes = {"f16", "bf16", "tf32"};
  return device;
}

std::string refusal(const Problem& problem, Feature feature = Feature::tma) {
  return mma_bulk().unsupported(traits_of(problem), device_with(feature));
}

// The name of the first structural constraint that does not hold; empty where all do.
std::string_view broken(const std::string& parameters, DType dtype = DType::bf16) {
  const Config config = config_of("mma_bulk:" + parameters);
  const KernelTraits traits = traits_of(test::gemm(100, 512, 1524, dtype, Layout::tn));
  for (const Constraint& constraint : config.kernel->constraints()) {
    if (!constraint.holds(config.values, traits)) return constraint.name;
  }
  return {};
}

TEST_CASE("mma_bulk serves rows along k of which some begin within 16 bytes") {
  const auto tn = [](std::int64_t k, DType dtype) {
    return test::gemm(100, 512, k, dtype, Layout::tn);
  };
  CHECK(refusal(tn(1524, DType::bf16)).empty());
  CHECK(refusal(tn(111, DType::fp16)).empty());
  CHECK(refusal(tn(1522, DType::tf32)).empty());
  CHECK(refusal(tn(1524, DType::tf32)).find("do not start on 16 bytes") != std::string::npos);
  CHECK(refusal(tn(1520, DType::bf16)).find("do not start on 16 bytes") != std::string::npos);
  Problem one_side = tn(1524, DType::bf16);
  one_side.lda = 1528;
  CHECK(refusal(one_side).empty());
  CHECK_FALSE(refusal(tn(1524, DType::fp32)).empty());
  for (const Layout layout : {Layout::tt, Layout::nn, Layout::nt}) {
    CHECK_FALSE(refusal(test::gemm(100, 516, 1524, DType::bf16, layout)).empty());
  }
  CHECK_FALSE(
      refusal(test::geglu(100, 516, 1524, DType::bf16, Layout::tn, Activation::silu)).empty());
  CHECK(refusal(tn(1524, DType::bf16), Feature::cp_async).find("no bulk copies") !=
        std::string::npos);
}

TEST_CASE("mma_bulk's structure: whole instructions, whole lines, equal shares, few copies") {
  CHECK(broken("block_m=32,split_k=4").empty());
  CHECK(broken("block_m=24") == "warp_tile_m");
  CHECK(broken("block_n=24,warps_n=2") == "warp_tile_n");
  CHECK(broken("block_k=96") == "lines");
  CHECK(broken("block_k=96", DType::tf32).empty());
  CHECK(broken("block_m=48,warps_m=1,split_k=5") == "shares");
  CHECK(broken("block_m=128,block_n=128,warps_m=1,warps_n=1") == "copies");
  CHECK(broken("block_m=128,block_n=128,warps_m=1,warps_n=2,warps_k=2") == "accumulators");
}

TEST_CASE("mma_bulk's boxes have the rows that begin alike, and no others") {
  const std::string tile =
      "mma_bulk:block_m=32,block_n=64,block_k=192,stages=2,warps_m=1,warps_n=2,warps_k=4,boxes=1";
  Problem problem = test::gemm(100, 512, 1523);
  problem.ldb = 1524;
  problem = checked(problem).value();
  const Config config = config_of(tile);
  // 8 boxes of 4 rows of A, 2 of 32 of B, in whole lines.
  const std::int64_t row = 192 * 2 + 16;
  const Resources r = config.kernel->resources(config, problem, device_with(Feature::tma), 0);
  CHECK(r.smem_bytes == 2 * (8 * ((4 * row + 127) / 128 * 128) + 2 * 32 * row) + 2 * 8);

  DevicePointers at;
  at.a = 1 << 20;
  at.b = 1 << 21;
  const LaunchPlan plan =
      config.kernel->launch_plan(config, problem, device_with(Feature::tma), at, 0);
  CHECK(plan.params_size == sizeof(GemmArgs) + 16 * 128);
  REQUIRE(plan.map_count == 8 + 2);
  for (std::size_t i = 0; i < plan.map_count; ++i) {
    const bool of_a = i < 8;
    const std::int64_t of_box = static_cast<std::int64_t>(of_a ? i : i - 8);
    const std::int64_t first = of_box * (of_a ? 1523 : 1524) * 2;  // bytes
    const TensorMap& map = plan.maps[i];
    CHECK(map.offset == sizeof(GemmArgs) + i * 128);
    CHECK(map.address == (of_a ? at.a : at.b) + static_cast<std::uint64_t>(first / 16 * 16));
    CHECK(map.inner == first % 16 / 2 + 1523);
    CHECK(map.outer == (of_a ? (100 - of_box + 7) / 8 : 256));
    CHECK(map.pitch_bytes == (of_a ? 8 * 1523 * 2 : 2 * 1524 * 2));
    CHECK((map.box_inner == 192 + 8 && map.box_outer == (of_a ? 4 : 32)));
    CHECK(map.swizzle_bytes == 0);
  }
  // A box without rows has a map all the same, of what there is.
  const Problem few = test::gemm(3, 512, 1523);
  CHECK(config.kernel->launch_plan(config, few, device_with(Feature::tma), at, 0).maps[5].address ==
        at.a);

  CHECK(broken("block_k=192,boxes=1").empty());
  CHECK(broken("block_k=256,boxes=1") == "boxes");
  CHECK(broken("block_k=224,boxes=1", DType::tf32).empty());
}

TEST_CASE("mma_bulk's parts of k are a cluster, which needs no workspace") {
  const Problem problem = test::gemm(100, 512, 1524, DType::bf16, Layout::tn);
  const DeviceSpec device = device_with(Feature::tma);
  const Config config = config_of(std::string(kTile) + "split_k=4");
  const Resources r = mma_bulk().resources(config, problem, device, 0);
  // 2 stages of 96 rows of 192 elements and a line; 3 parts' 8 rows of 64 floats; 3 barriers.
  CHECK(r.smem_bytes == 2 * 96 * (384 + 128) + 3 * 8 * 64 * 4 + 3 * 8);
  CHECK(r.threads == 256);
  CHECK(r.cluster == 4);
  CHECK(r.grid == 4 * 8 * 4);
  CHECK(r.workspace_bytes == 0);
  const LaunchPlan plan = mma_bulk().launch_plan(config, problem, device, {}, 0);
  CHECK(plan.cluster[0] == 4);
  CHECK(plan.map_count == 0);
  // Where the sums of the warps along k take more than the ring, they decide.
  const Config summed = config_of(
      "mma_bulk:block_m=64,block_n=64,block_k=64,stages=1,warps_m=1,warps_n=1,warps_k=8,split_k=1");
  CHECK(mma_bulk().resources(summed, problem, device, 0).smem_bytes == 8 * 64 * 72 * 4 + 8);
}

}  // namespace
}  // namespace autotune

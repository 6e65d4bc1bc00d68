// mma for fp32 in three bf16 parts: what its host twin serves, needs and is worth.
#include "kernels/gemm/gemm_twin.h"

#include <cstdint>
#include <vector>

#include "test/support/catch.h"
#include "test/unit/kernels/twins.h"

namespace autotune {
namespace {

TEST_CASE("mma serves fp32 in parts of bf16, unless FFMA is asked for") {
  DeviceSpec ampere;
  ampere.limits.mma_dtypes = {"f16", "bf16", "tf32"};
  DeviceSpec turing;
  turing.limits.mma_dtypes = {"f16"};
  const HostTwin& mma = *find_kernel(*find_family("gemm"), "mma");
  const HostTwin& simt = *find_kernel(*find_family("gemm"), "simt");
  KernelTraits traits;
  traits.dtype = traits.out_dtype = DType::fp32;
  CHECK(mma.unsupported(traits, ampere).empty());
  CHECK_FALSE(mma.unsupported(traits, turing).empty());
  traits.exact_fp32 = true;
  CHECK(mma.unsupported(traits, ampere) == "--exact-fp32 asks for FFMA");
  CHECK(simt.unsupported(traits, ampere).empty());
}

TEST_CASE("fp32 in parts takes the shared memory of tf32, and registers for the parts") {
  const Config config =
      config_of("mma:block_m=64,block_n=64,block_k=32,stages=3,warps_m=2,warps_n=2");
  Problem problem = product(1024, 1024);
  problem.k = problem.lda = problem.ldb = 1024;
  problem.dtype = DType::tf32;
  problem.out_dtype = DType::fp32;
  const Resources tf32 = config.kernel->resources(config, problem, {}, 0);
  problem.dtype = DType::fp32;
  const Resources fp32 = config.kernel->resources(config, problem, {}, 0);
  CHECK(fp32.smem_bytes == 3 * (64 + 64) * 32 * 4);
  CHECK(fp32.smem_bytes == tf32.smem_bytes);
  CHECK(fp32.threads == tf32.threads);
  CHECK(fp32.barriers == 1);
  CHECK(fp32.workspace_bytes == 0);
  // Warp tiles of 32 x 32: 32 accumulators, 16 words of each of two steps of 8, 48 of parts.
  CHECK(fp32.register_demand == 32 + 48 + 56);
  CHECK(fp32.registers == 32 + 32 + 48 + 6 * 8 + 40);
  const std::vector<Term> terms = config.kernel->register_terms(config, traits_of(problem));
  CHECK(terms[2].label == "parts");
  CHECK(terms[2].value == 48);
}

TEST_CASE("fp32 in parts is worth a sixth of bf16 where the tensor cores are the ceiling") {
  Problem problem = product(4096, 4096);
  problem.dtype = problem.out_dtype = DType::fp32;
  DeviceSpec device;
  device.sm_count = 132;
  device.boost_mhz = 1980;
  device.f16_bf16_tflops = 989;
  device.limits.features = static_cast<std::uint32_t>(Feature::wgmma);
  const auto rate = [&](const char* text) {
    const Config config = config_of(text);
    const Work work = config.kernel->work(config, problem, device);
    CHECK(work.unit == Work::Unit::tensor);
    return work.unit_rate;
  };
  const double large = rate("mma:block_m=128,block_n=256,warps_m=1,warps_n=2");
  CHECK(large == Approx(0.62 / 6));
  const double small = rate("mma:block_m=32,block_n=32,warps_m=2,warps_n=2");
  // 116 instructions a step of 16 in k of a warp tile of 16 x 16, whose products take 84 clocks.
  CHECK(small / large == Approx(0.72).epsilon(0.02));
  // A slower tensor core is waited for, whatever the warp tile.
  device.f16_bf16_tflops = 100;
  CHECK(rate("mma:block_m=32,block_n=32,warps_m=2,warps_n=2") == Approx(0.62 / 6));
}

}  // namespace
}  // namespace autotune

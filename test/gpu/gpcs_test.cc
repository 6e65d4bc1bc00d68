// Where clusters run on the GPU at hand.
#include "autotune/gpu/gpcs.h"

#include <iostream>
#include <map>
#include <string>

#include "autotune/gpu/launch.h"
#include "kernels/device_spec.h"
#include "test/gpu/default_config.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

TEST_CASE("a kernel in clusters learns where they run") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const DeviceSpec& device = bench->gpu().spec;
  if (device.limits.cc != 90) {
    std::cout << "SKIPPED: where clusters run: " << device.name << " has no wgmma" << std::endl;
    return;
  }
  const Problem problem = test::gemm(512, 512, 512, DType::bf16, Layout::tn);
  const auto placed = [&](const std::string& cluster) {
    const Config config = *parse_config(
        "wgmma:block_m=64,block_n=64,stages=4,consumers=1," + cluster, *find_family("gemm"));
    const gpu::CompiledCode code = test::compile(config, problem, device);
    REQUIRE(code.ok);
    const auto kernel = gpu::LoadedKernel::load(code.cubin, config.kernel->entry());
    REQUIRE(kernel);
    return kernel->placed(device).cluster_gpcs;
  };
  CHECK(placed("cluster_m=1,cluster_n=1").empty());
  const auto told = placed("cluster_m=2,cluster_n=1");
  CHECK(placed("cluster_m=1,cluster_n=2") == told);
  REQUIRE(told.size() == 3);
  for (const ClusterGpcs& grid : told) {
    INFO("clusters of " << grid.blocks);
    if (const auto reached = reached_sms(device, grid.blocks, 0)) {
      CHECK(static_cast<int>(grid.gpcs.size()) == *reached / grid.blocks);
    }
    std::map<int, int> sms;
    for (const int gpc : grid.gpcs) sms[gpc] += grid.blocks;
    CHECK(sms.size() > 1);
    for (const auto& [gpc, count] : sms) CHECK(count <= 18);  // nine TPCs of two SMs
  }
}

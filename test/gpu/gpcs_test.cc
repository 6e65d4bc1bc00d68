// Where clusters run on the GPU at hand.
#include "autotune/gpu/gpcs.h"

#include <map>

#include "kernels/device_spec.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

TEST_CASE("the GPU tells where its clusters run, and the same once more") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const DeviceSpec& device = bench->gpu().spec;
  const std::vector<ClusterGpcs> told = gpu::cluster_gpcs(device);
  CHECK(told == device.cluster_gpcs);
  if (device.limits.cc < 90) {
    CHECK(told.empty());
    return;
  }
  REQUIRE(told.size() == 3);
  for (const ClusterGpcs& grid : told) {
    INFO("clusters of " << grid.blocks);
    const int reached = presumed_sms(device, grid.blocks, 0);
    CHECK(static_cast<int>(grid.gpcs.size()) * grid.blocks == reached / grid.blocks * grid.blocks);
    std::map<int, int> sms;
    for (const int gpc : grid.gpcs) sms[gpc] += grid.blocks;
    // A GPC has at most nine TPCs of two SMs, and what two of these have in common is more than
    // one.
    CHECK(sms.size() > 1);
    for (const auto& [gpc, count] : sms) CHECK(count <= 18);
  }
}

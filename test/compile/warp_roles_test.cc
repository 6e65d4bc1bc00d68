// The warp-role thread budget: roles of 4 + 4 + 4 warps need 384 threads, and the function was
// compiled for 256. Seen in the cubin, before any launch and without a GPU.
#include <vector>

#include "autotune/gpu/nvrtc.h"
#include "autotune/io/builtin.h"
#include "kernels/verdict.h"
#include "search/check.h"
#include "test/support/catch.h"

using namespace autotune;

TEST_CASE("4 + 4 + 4 warps against a function compiled for 256 threads") {
  const std::vector<int> warps_of_roles{4, 4, 4};  // producer, two consumers
  Resources wanted;
  for (const int warps : warps_of_roles) wanted.threads += warps * 32;
  const DeviceSpec* device = io::find_device("NVIDIA H200");
  REQUIRE(device != nullptr);
  const auto code = (*gpu::nvrtc())
                        ->compile({"extern \"C\" __global__ void __launch_bounds__(256) "
                                   "roles(float* p) { p[threadIdx.x] = 1; }",
                                   "roles",
                                   device->limits.arch,
                                   {}});
  REQUIRE(code.ok);
  CHECK(code.actual.max_threads == 256);

  const auto verdict = search::check_compiled(wanted, code.actual, *device);
  REQUIRE(verdict);
  CHECK(verdict->rule == Rule::threads);
  CHECK(verdict->required == 384);
  CHECK(verdict->limit == 256);
  CHECK(describe(*verdict, *device).find("out of resource: threads, required 384, limit 256") == 0);

  wanted.threads = 256;
  CHECK(!search::check_compiled(wanted, code.actual, *device));
}

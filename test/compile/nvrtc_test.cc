#include "autotune/gpu/nvrtc.h"

#include <string>
#include <thread>
#include <vector>

#include "kernels/device_source.h"
#include "test/compile/architectures.h"
#include "test/support/catch.h"

namespace autotune::embedded {
extern const DeviceSource measure_source;
}

using namespace autotune;

TEST_CASE("the compiler tells its version") {
  const auto compiler = gpu::nvrtc();
  REQUIRE(compiler);
  CHECK((*compiler)->version().rfind("nvrtc ", 0) == 0);
  CHECK((*compiler)->version().find('.') != std::string::npos);
}

TEST_CASE("what does not compile is data") {
  const gpu::Nvrtc& compiler = **gpu::nvrtc();
  const auto wrong =
      compiler.compile({"extern \"C\" __global__ void k() { undeclared = 1; }", "k", "sm_90a", {}});
  CHECK(!wrong.ok);
  CHECK(wrong.cubin.empty());
  CHECK(wrong.log.find("undeclared") != std::string::npos);

  const auto unknown = compiler.compile({"extern \"C\" __global__ void k() {}", "k", "sm_12", {}});
  CHECK(!unknown.ok);
  CHECK(!unknown.log.empty());

  const auto absent =
      compiler.compile({"extern \"C\" __global__ void k() {}", "other", "sm_90a", {}});
  CHECK(!absent.ok);
  CHECK(absent.log.find("other") != std::string::npos);

  const auto virtual_only =
      compiler.compile({"extern \"C\" __global__ void k() {}", "k", "compute_90", {}});
  CHECK(!virtual_only.ok);
}

TEST_CASE("a source that asks for too much shared memory does not compile") {
  const auto code = (*gpu::nvrtc())
                        ->compile({"extern \"C\" __global__ void k(int* p) { __shared__ int "
                                   "s[70000]; s[threadIdx.x] = *p;"
                                   " __syncthreads(); *p = s[*p]; }",
                                   "k",
                                   "sm_90a",
                                   {}});
  CHECK(!code.ok);
  CHECK(code.log.find("NVRTC_ERROR_COMPILATION") != std::string::npos);
}

TEST_CASE("definitions reach the source by name") {
  const std::vector<Definition> definitions{{"WIDTH", "37"}};
  const auto code =
      (*gpu::nvrtc())
          ->compile({"static_assert(WIDTH == 37, \"\"); extern \"C\" __global__ void k() {}", "k",
                     "sm_80", definitions});
  CHECK(code.ok);
}

TEST_CASE("threads compile at the same time") {
  std::vector<int> right(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([i, &right] {
      const std::string bytes = std::to_string(1024 * (i + 1));
      const std::vector<Definition> definitions{{"BYTES", bytes}};
      const auto code = (*gpu::nvrtc())
                            ->compile({"extern \"C\" __global__ void k(char* p) { __shared__ char "
                                       "s[BYTES]; s[threadIdx.x] = "
                                       "*p; __syncthreads(); *p = s[*p]; }",
                                       "k", "sm_86", definitions});
      right[static_cast<std::size_t>(i)] =
          code.ok && code.actual.static_smem_bytes == 1024 * (i + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(8, 1));
}

TEST_CASE("the measuring kernels compile for every architecture, without an include path") {
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    const std::string& arch = device->limits.arch;
    INFO(arch);
    const auto code =
        (*gpu::nvrtc())->compile({embedded::measure_source.text, "reference_gemm", arch, {}});
    INFO(code.log);
    REQUIRE(code.ok);
    CHECK(code.actual.spill_store_bytes == 0);
    CHECK(code.actual.stack_bytes == 0);
  }
}

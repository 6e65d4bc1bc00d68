// The cubin reader on freshly compiled kernels of every architecture, against ptxas' own report and
// against what the source asked for.
#include "autotune/gpu/cubin.h"

#include <random>
#include <string>

#include "autotune/gpu/nvrtc.h"
#include "test/compile/architectures.h"
#include "test/support/catch.h"

using namespace autotune;

namespace {

// `plain`: 4000 bytes of static shared memory, barriers 0 and 3, 256 threads, dynamic memory too.
constexpr const char* kPlain = R"(
extern "C" __global__ void __launch_bounds__(256, 1) CLUSTER plain(float* p, int n) {
  __shared__ float fixed[1000];
  extern __shared__ float dynamic[];
  fixed[threadIdx.x] = p[threadIdx.x];
  dynamic[threadIdx.x] = n;
  __syncthreads();
  asm volatile("bar.sync 3, 64;");
  p[threadIdx.x] = fixed[(threadIdx.x + n) % 1000] + dynamic[5];
}
extern "C" __global__ void bare() {}
extern "C" __global__ void only_dynamic(float* p) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}
)";

// Far more live values than 32 registers hold.
constexpr const char* kSpills = R"(
extern "C" __global__ void __launch_bounds__(1024, 2) spills(float* p, int n) {
  float a[96];
#pragma unroll
  for (int i = 0; i < 96; ++i) a[i] = p[i * 1024 + threadIdx.x];
  for (int round = 0; round < n; ++round) {
#pragma unroll
    for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 7) % 96] + a[(i + 31) % 96];
  }
#pragma unroll
  for (int i = 0; i < 96; ++i) p[i * 1024 + threadIdx.x] = a[i];
}
)";

gpu::CompiledCode compile(const char* source, const char* entry, const std::string& arch,
                          const std::vector<Definition>& definitions = {}) {
  const auto compiler = gpu::nvrtc();
  REQUIRE(compiler);
  gpu::CompiledCode code = (*compiler)->compile({source, entry, arch, definitions});
  INFO(code.log);
  REQUIRE(code.ok);
  return code;
}

// The number that follows "Used " in the report of `entry`.
int reported_registers(const std::string& log, const std::string& entry) {
  const std::size_t at = log.find("Used ", log.find("properties for " + entry + "\n"));
  return std::stoi(log.substr(at + 5));
}

}  // namespace

TEST_CASE("resources of every architecture's cubin are what the source asked for") {
  REQUIRE(test::one_gpu_per_capability().size() == 11);
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    const std::string& arch = device->limits.arch;
    INFO(arch);
    const bool clusters = device->limits.cluster_portable > 1;
    const auto code =
        compile(kPlain, "plain", arch, {{"CLUSTER", clusters ? "__cluster_dims__(2,1,1)" : ""}});
    CHECK(code.actual.static_smem_bytes == 4000);
    CHECK(code.actual.max_threads == 256);
    CHECK(code.actual.barriers == 4);
    CHECK(code.actual.cluster == (clusters ? 2 : 1));
    CHECK(code.actual.stack_bytes == 0);
    CHECK(code.actual.registers == reported_registers(code.log, "plain"));

    const auto bare = gpu::read_cubin(code.cubin, "bare").value();
    CHECK(bare.static_smem_bytes == 0);
    CHECK(bare.barriers == 0);
    CHECK(bare.cluster == 1);
    CHECK(bare.max_threads == 1024);
    CHECK(gpu::read_cubin(code.cubin, "only_dynamic").value().static_smem_bytes == 0);
    CHECK(!gpu::read_cubin(code.cubin, "absent"));
  }
}

TEST_CASE("spills of every architecture are read") {
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    const std::string& arch = device->limits.arch;
    INFO(arch);
    const auto code = compile(kSpills, "spills", arch);
    CHECK(code.actual.registers <= 64);
    CHECK(code.actual.max_threads == 1024);
    CHECK(code.actual.spill_store_bytes > 0);
    CHECK(code.actual.spill_load_bytes > 0);
    CHECK(code.actual.stack_bytes > 0);
  }
}

TEST_CASE("that code spills is known from the cubin alone, without the compiler's log") {
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    const std::string& arch = device->limits.arch;
    INFO(arch);
    const auto spilled = gpu::read_cubin(compile(kSpills, "spills", arch).cubin, "spills");
    CHECK(spilled->spills());
    const auto whole = compile(kPlain, "plain", arch, {{"CLUSTER", ""}});
    CHECK(!gpu::read_cubin(whole.cubin, "plain")->spills());
  }
}

TEST_CASE("what spills is compiled again where nobody checks its results, and nothing else is") {
  const auto compiler = gpu::nvrtc();
  REQUIRE(compiler);
  const std::vector<Definition> plain = {{"CLUSTER", ""}};
  for (const DeviceSpec* device : test::one_gpu_per_capability()) {
    const std::string& arch = device->limits.arch;
    INFO(arch);
    const auto again = (*compiler)->compile_unchecked({kSpills, "spills", arch, {}});
    CHECK((again.ok && again.plainly));
    CHECK(again.cubin != compile(kSpills, "spills", arch).cubin);
    const auto once = (*compiler)->compile_unchecked({kPlain, "bare", arch, plain});
    CHECK((once.ok && !once.plainly));
  }
}

TEST_CASE("threads without launch bounds are limited by registers alone") {
  constexpr const char* kHungry = R"(
extern "C" __global__ void hungry(float* p, int n) {
  float a[140];
#pragma unroll
  for (int i = 0; i < 140; ++i) a[i] = p[i * 1024 + threadIdx.x];
  for (int round = 0; round < n; ++round) {
#pragma unroll
    for (int i = 0; i < 140; ++i) a[i] = a[i] * a[(i + 7) % 140] + a[(i + 31) % 140];
  }
#pragma unroll
  for (int i = 0; i < 140; ++i) p[i * 1024 + threadIdx.x] = a[i];
})";
  const auto code = compile(kHungry, "hungry", "sm_90a");
  REQUIRE(code.actual.registers > 128);
  REQUIRE(code.actual.registers <= 168);
  CHECK(code.actual.max_threads == 384);  // 12 warps x 168 x 32 <= 65536 < 16 warps
}

TEST_CASE("a cut or damaged cubin is read without harm") {
  const auto code = compile(kPlain, "plain", "sm_90a", {{"CLUSTER", ""}});
  const std::string& whole = code.cubin;
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    (void)gpu::read_cubin(std::string(whole, 0, size), "plain");
  }
  CHECK(!gpu::read_cubin(std::string(whole, 0, whole.size() / 2), "plain"));
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = whole;
    for (int flips = 0; flips < 8; ++flips) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    (void)gpu::read_cubin(damaged, "plain");
  }
}

// Timing: cold is cold, hot is hot, and the time is the kernel's own.
#include <cstring>
#include <vector>

#include "autotune/gpu/launch.h"
#include "autotune/gpu/nvrtc.h"
#include "autotune/gpu/statistics.h"
#include "autotune/gpu/timer.h"
#include "test/gpu/gpu_here.h"

using namespace autotune;

namespace {

constexpr const char* kSource = R"(
struct Args { const uint4* data; unsigned long long count; unsigned* sink; unsigned long long ns; };
extern "C" __global__ void __launch_bounds__(512) read(const __grid_constant__ Args args) {
  unsigned mix = 0;
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * 512ull + threadIdx.x; i < args.count; i += step) {
    const uint4 w = args.data[i];
    mix |= w.x ^ w.y ^ w.z ^ w.w;
  }
  if (mix != 0) *args.sink = mix;
}
extern "C" __global__ void __launch_bounds__(512) wait(const __grid_constant__ Args args) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < args.ns);
}
)";

struct Args {
  std::uint64_t data;
  std::uint64_t count;
  std::uint64_t sink;
  std::uint64_t ns;
};

struct Probe {
  gpu::LoadedKernel kernel;
  LaunchPlan plan;
  gpu::Subject subject() const {
    return {
        [this](void* stream, std::size_t) { return kernel.launch(plan, stream); }, {}, nullptr, 1};
  }
};

Probe probe(const gpu::Workbench& bench, const char* entry, const Args& args, unsigned blocks) {
  const auto code = (*gpu::nvrtc())->compile({kSource, entry, bench.gpu().spec.limits.arch, {}});
  INFO(code.log);
  REQUIRE(code.ok);
  auto kernel = gpu::LoadedKernel::load(code.cubin, entry);
  REQUIRE(kernel);
  LaunchPlan plan;
  plan.grid = {blocks, 1, 1};
  plan.block = {512, 1, 1};
  std::memcpy(plan.params.data(), &args, sizeof(args));
  plan.params_size = sizeof(args);
  REQUIRE(!kernel->prepare(plan).value());
  return {std::move(*kernel), plan};
}

double median_of(gpu::Timer& timer, const gpu::Subject& subject) {
  const std::vector<gpu::Turn> order(gpu::Timer::kMostAtOnce, {&subject});
  REQUIRE(timer.sample(order));  // the first round also loads the code
  return gpu::median(timer.sample(order).value());
}

}  // namespace

TEST_CASE("a kernel that waits 300 us takes 300 us, cold and hot") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  auto timer = gpu::Timer::create(*bench).value();
  const Probe waits = probe(*bench, "wait", {0, 0, 0, 300'000}, 1);
  const gpu::Subject cold = waits.subject();
  CHECK(median_of(timer, cold) == Approx(303).margin(6));
  const gpu::Subject hot = timer.make_hot(cold).value();
  CHECK(hot.runs == 6);  // as many as 2 ms hold
  CHECK(median_of(timer, hot) == Approx(303).margin(6));
}

TEST_CASE("after the flush nothing of the inputs is in the L2") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  auto timer = gpu::Timer::create(*bench).value();
  // A quarter of the L2: hot reads never leave it.
  const auto bytes = static_cast<std::size_t>(bench->gpu().spec.l2_bytes / 4);
  auto data = gpu::DeviceMemory::allocate(bytes).value();
  auto sink = gpu::DeviceMemory::allocate(16).value();
  REQUIRE(bench->fill_bytes(data.address(), 0x11, bytes));
  const auto blocks = static_cast<unsigned>(bench->gpu().spec.sm_count) * 4;
  const Probe reads =
      probe(*bench, "read", {data.address(), bytes / 16, sink.address(), 0}, blocks);
  const gpu::Subject cold = reads.subject();
  const gpu::Subject hot = timer.make_hot(cold).value();
  const double cold_us = median_of(timer, cold);
  const double hot_us = median_of(timer, hot);
  INFO("cold " << cold_us << " us, hot " << hot_us << " us");
  CHECK(cold_us > 1.2 * hot_us);
  // No faster than the memory could be: the datasheet's rate and a quarter for optimism.
  const double floor_us = static_cast<double>(bytes) / (bench->gpu().spec.dram_gb_per_s * 1e3);
  CHECK(cold_us > floor_us / 1.25);
}

TEST_CASE("interleaved samples keep their order") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  auto timer = gpu::Timer::create(*bench).value();
  const Probe brief = probe(*bench, "wait", {0, 0, 0, 50'000}, 1);
  const Probe lengthy = probe(*bench, "wait", {0, 0, 0, 150'000}, 1);
  const gpu::Subject a = brief.subject();
  const gpu::Subject b = lengthy.subject();
  const std::vector<gpu::Turn> order{{&a}, {&b}, {&b}, {&a}, {&a}, {&b}};
  const auto times = timer.sample(order).value();
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK((times[i] > 100) == (order[i].subject == &b));
  }
}

TEST_CASE("the driver refuses a launch for the resource that is short, before it happens") {
  gpu::Workbench* bench = test::workbench();
  if (bench == nullptr) return;
  const Probe fits = probe(*bench, "wait", {0, 0, 0, 0}, 1);
  LaunchPlan plan = fits.plan;
  plan.block = {768, 1, 1};
  auto verdict = fits.kernel.prepare(plan).value();
  REQUIRE(verdict);
  CHECK(verdict->rule == Rule::threads);
  CHECK(verdict->required == 768);
  CHECK(verdict->limit == 512);

  plan = fits.plan;
  const std::int64_t limit = bench->gpu().spec.limits.smem_optin_per_block;
  plan.smem_bytes = static_cast<std::uint32_t>(limit);
  CHECK(!fits.kernel.prepare(plan).value());
  REQUIRE(fits.kernel.launch(plan, bench->stream()));
  REQUIRE(bench->synchronize());
  plan.smem_bytes = static_cast<std::uint32_t>(limit + 1);
  verdict = fits.kernel.prepare(plan).value();
  REQUIRE(verdict);
  CHECK(verdict->rule == Rule::shared_memory);
  CHECK(verdict->required == limit + 1);
  CHECK(verdict->limit == limit);

  // Blocks that wait for each other, each of which takes an SM.
  const int sms = bench->gpu().spec.sm_count;
  plan.smem_bytes = static_cast<std::uint32_t>(limit);
  plan.cooperative = true;
  plan.grid = {static_cast<std::uint32_t>(sms), 1, 1};
  CHECK(!fits.kernel.prepare(plan).value());
  REQUIRE(fits.kernel.launch(plan, bench->stream()));
  REQUIRE(bench->synchronize());
  plan.grid[0] += 1;
  CHECK(fits.kernel.prepare(plan).value() == Verdict{Rule::co_residency, sms + 1, sms});
  CHECK_FALSE(fits.kernel.launch(plan, bench->stream()));
  REQUIRE(bench->synchronize());
}

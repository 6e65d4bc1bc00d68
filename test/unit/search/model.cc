#include "search/model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "real_plans.h"

namespace autotune::search {
namespace {

constexpr std::string_view kH200 = "nvidia-h200";
constexpr std::string_view kH100 = "nvidia-h100-80gb-hbm3";

struct Shape {
  int block_m, block_n, block_k, stages, warp_m, warp_n;
};

Shape shape_of(const Config& c) {
  const int m = value_of(c, "block_m");
  const int n = value_of(c, "block_n");
  return {m,
          n,
          value_of(c, "block_k"),
          value_of(c, "stages"),
          m / value_of(c, "warps_m"),
          n / value_of(c, "warps_n")};
}

double predicted(const Plan& plan, std::string_view text) {
  const auto config = parse_config(text, *find_family("gemm"));
  REQUIRE(config);
  for (const Candidate& candidate : plan.survivors) {
    if (candidate.config == *config) return candidate.predicted_us;
  }
  FAIL("not a survivor: " << text);
  return 0;
}

}  // namespace

TEST_CASE("a large bf16 GEMM on an H200 prefers warpgroup instructions on large tiles") {
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096));
  for (std::size_t i = 0; i < 20; ++i) {
    const Config& config = plan.survivors[i].config;
    INFO(to_string(config));
    CHECK(config.kernel->name() == "wgmma");
    CHECK(value_of(config, "block_m") * value_of(config, "block_n") >= 128 * 104);
    CHECK(value_of(config, "stages") >= 3);
  }
  const double tflops = flops(plan.problem) / plan.default_config().predicted_us / 1e6;
  CHECK(tflops > 700);
  CHECK(tflops < device_named(kH200).measured_f16_bf16_tflops);
}

TEST_CASE("mma on an H200 prefers large tiles, 64x64 warp tiles, 3 to 6 stages") {
  Limits mma_only;
  mma_only.excludes.push_back(parse_pattern("wgmma", *find_family("gemm")).value());
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096), mma_only);
  std::set<std::string> codes;  // each in its best order of tiles
  for (std::size_t i = 0; codes.size() < 4; ++i) {
    const Shape s = shape_of(plan.survivors[i].config);
    if (!codes.insert(to_string(code_of(plan.survivors[i].config))).second) continue;
    INFO(to_string(plan.survivors[i].config));
    CHECK(s.block_m * s.block_n >= 128 * 128);
    CHECK(s.block_m >= 128);
    CHECK(s.block_n >= 128);
    CHECK(s.warp_m == 64);
    CHECK(s.warp_n == 64);
  }
  const Shape best = shape_of(plan.default_config().config);
  CHECK(best.stages >= 3);
  CHECK(best.stages <= 6);
  // Within reach of what mma.sync can do there, and not beyond it.
  const double tflops = flops(plan.problem) / plan.default_config().predicted_us / 1e6;
  CHECK(tflops > 350);
  CHECK(tflops < 0.62 * 989);
}

TEST_CASE(
    "one row against large weights prefers small tiles, deep stages, and reads at DRAM's rate") {
  const Plan plan = plan_on(kH200, gemm(1, 4096, 4096));
  for (std::size_t i = 0; i < 8; ++i) {
    const Shape s = shape_of(plan.survivors[i].config);
    INFO(to_string(plan.survivors[i].config));
    const std::string_view kernel = plan.survivors[i].config.kernel->name();
    const int parts = std::max(1, value_of(plan.survivors[i].config, "split_k"));
    // The fewest rows that it can have.
    const bool swapped = kernel == "wgmma_swap";
    const bool by_warps = kernel == "gemv" && value_of(plan.survivors[i].config, "lanes_k") == 32;
    const int rows = swapped ? s.block_n / parts : s.block_m;
    CHECK(rows == (kernel == "wgmma" ? 64 : by_warps ? 1 : kernel == "mma" ? 16 : 8));
    const int columns = swapped ? s.block_m : s.block_n / parts;
    CHECK(columns <= 64);
    // Bytes of weights in flight, for each SM. gemv asks anew as soon as it has multiplied.
    const int ahead = kernel == "gemv" ? s.stages : s.stages - 1;
    const double per_block = ahead * (swapped ? s.block_m : s.block_n) * s.block_k * 2;
    CHECK(per_block * static_cast<double>(plan.survivors[i].resources.grid) / 132 >= 24576);
  }
  // Reading the weights alone takes 11.4 us there.
  CHECK(plan.default_config().predicted_us > 10);
  CHECK(plan.default_config().predicted_us < 20);
}

TEST_CASE("a small problem prefers tiles that fill the SMs") {
  const Plan plan = plan_on(kH200, gemm(1024, 1024, 1024));
  const Shape best = shape_of(plan.default_config().config);
  CHECK((1024 / best.block_m) * (1024 / best.block_n) >= 64);
}

TEST_CASE("what is known to be bad is predicted to be slower") {
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096));
  const std::string tail = ",raster=0,swizzle=4";
  const double good =
      predicted(plan, "mma:block_m=128,block_n=128,block_k=32,stages=4,warps_m=2,warps_n=2" + tail);
  CHECK(predicted(plan, "mma:block_m=128,block_n=128,block_k=32,stages=2,warps_m=2,warps_n=2" +
                            tail) > good * 1.05);
  CHECK(predicted(plan, "mma:block_m=128,block_n=128,block_k=32,stages=4,warps_m=4,warps_n=4" +
                            tail) > good * 1.05);
  CHECK(predicted(plan, "mma:block_m=16,block_n=128,block_k=32,stages=4,warps_m=1,warps_n=2" +
                            tail) > good * 2);
  // On a device whose L2 holds little, walking one long row of tiles reads B again and again.
  const Plan small_l2 = plan_on("nvidia-a10", gemm(8192, 8192, 1024));
  const std::string tile = "mma:block_m=128,block_n=128,block_k=32,stages=3,warps_m=2,warps_n=2";
  CHECK(predicted(small_l2, tile + ",raster=0,swizzle=1") >
        predicted(small_l2, tile + ",raster=0,swizzle=8"));
}

TEST_CASE("rows that begin inside a line of the L2 cost more loads, which a cluster shares") {
  const auto loads = [](std::int64_t size, int cluster_m, int cluster_n) {
    const auto config = parse_config(
        "wgmma:block_m=64,block_n=128,block_k=64,stages=8,consumers=1,pingpong=0,cluster_m=" +
            std::to_string(cluster_m) + ",cluster_n=" + std::to_string(cluster_n),
        *find_family("gemm"));
    REQUIRE(config);
    return config->kernel->work(*config, gemm(size, size, size), device_named(kH200))
        .load_bytes_per_k_tile;
  };
  // 192 rows of 128 bytes; where rows are 2000 bytes apart, one in eight begins on a line.
  CHECK(loads(1024, 1, 1) == Approx(192 * 128));
  CHECK(loads(1024, 2, 1) == Approx(192 * 128));
  CHECK(loads(1000, 1, 1) == Approx(192 * 128 * 1.875));
  CHECK(loads(1000, 2, 1) == Approx((64 + 64) * 128 * 1.875));
  CHECK(loads(1000, 1, 2) == Approx((32 + 128) * 128 * 1.875));
}

TEST_CASE("tiles that begin inside a line, and slabs that they fill in part, cost more loads") {
  const auto loads = [](int block_n, const char* layout) {
    const auto config =
        parse_config("wgmma:block_m=64,block_n=" + std::to_string(block_n) +
                         ",block_k=64,stages=4,consumers=1,pingpong=0,cluster_m=1,cluster_n=1",
                     *find_family("gemm"));
    REQUIRE(config);
    Problem problem = gemm(1024, 1024, 1024);
    problem.layout = *parse_layout(layout);
    return config->kernel->work(*config, *checked(problem), device_named(kH200))
        .load_bytes_per_k_tile;
  };
  // Where B is contiguous along k, its rows begin on lines whatever the tile.
  CHECK(loads(152, "tn") == Approx((64 + 152) * 128));
  // Along n, 64 columns at a time: 128 take two whole lines of each row. 152 take three, and every
  // tile begins at another multiple of 16 bytes.
  CHECK(loads(128, "tt") == Approx((64 + 128) * 128));
  CHECK(loads(152, "tt") == Approx((64 + 192 * 1.875) * 128));
  CHECK(loads(96, "tt") == Approx((64 + 128 * 1.5) * 128));  // half of the tiles begin in a line
}

TEST_CASE("clusters that do not fit beside each other take a second wave") {
  const Problem problem = gemm(512, 256, 65536);  // 16 tiles
  const auto us = [&](const DeviceSpec& device, const char* split) {
    const Config config =
        parse_config(std::string("wgmma:block_m=64,block_n=128,block_k=128,stages=4,consumers=1,"
                                 "pingpong=0,cluster_m=1,cluster_n=1,raster=0,swizzle=1,split_k=") +
                         split,
                     *find_family("gemm"))
            .value();
    Resources resources;
    REQUIRE_FALSE(check(config, problem, traits_of(problem), device, {}, &resources));
    return predict_us(config, problem, device, resources, 0);
  };
  DeviceSpec device = device_named(kH200);
  REQUIRE(device.clustered_sms == 120);
  CHECK(us(device, "8") > us(device, "4"));  // of which 15 fit
  device.clustered_sms = 0;
  CHECK(us(device, "8") < us(device, "4"));
}

TEST_CASE("blocks that wait for each other add up faster than the last of them alone") {
  const Problem problem = gemm(256, 256, 65536);
  const Config config =
      parse_config("wgmma:block_m=128,block_n=128,block_k=64,stages=6,consumers=2,split_k=33",
                   *find_family("gemm"))
          .value();
  const DeviceSpec device = device_named(kH200);
  Resources resources = config.kernel->resources(config, problem, device, 0);
  REQUIRE(resources.cooperative);
  const double together = predict_us(config, problem, device, resources, 0);
  resources.cooperative = false;
  // The last reads 33 x 64 KiB, the others one each.
  CHECK(predict_us(config, problem, device, resources, 0) > together + 10);
}

TEST_CASE("predicted spills cost time") {
  Limits keep;
  keep.keep_slow = true;
  const Plan plan = plan_on(kH200, gemm(4096, 4096, 4096), keep);
  double spilled = 1e30;
  for (const Candidate& c : plan.survivors) {
    const Resources& r = c.resources;
    if (r.register_demand > (r.role_registers > 0 ? r.role_registers : r.registers)) {
      spilled = std::min(spilled, c.predicted_us);
    }
  }
  REQUIRE(spilled < 1e30);
  CHECK(spilled > plan.default_config().predicted_us);
}

TEST_CASE("fewer SMs take longer, about in proportion") {
  const Problem problem = gemm(4096, 4096, 4096);
  Limits quarter;
  quarter.max_sms = 33;
  const double all = plan_on(kH200, problem).default_config().predicted_us;
  const double some = plan_on(kH200, problem, quarter).default_config().predicted_us;
  CHECK(some > 3 * all);
  CHECK(some < 5 * all);
}

TEST_CASE("a hot problem that fits in L2 is no slower than a cold one") {
  Problem problem = gemm(16, 4096, 1024);
  const double cold = plan_on(kH200, problem).default_config().predicted_us;
  problem.mode = TimingMode::hot;
  CHECK(plan_on(kH200, problem).default_config().predicted_us < cold);
}

TEST_CASE("every coefficient lies within its bounds and moves some prediction", "[long]") {
  const Problem problems[] = {gemm(4096, 4096, 4096), gemm(16, 4096, 4096),
                              gemm(1024, 1024, 1024, DType::fp32), gemm(64, 1000, 8192)};
  for (const Coefficient& coefficient : model_coefficients()) {
    INFO(coefficient.name);
    DeviceSpec device = device_named(kH100);
    device.launch_us = 0;
    CHECK(device.model.*coefficient.member >= coefficient.lo);
    CHECK(device.model.*coefficient.member <= coefficient.hi);
    DeviceSpec changed = device;
    changed.model.*coefficient.member *= 0.6;
    bool moved = false;
    for (const Problem& problem : problems) {
      const Plan plan = plan_on(kH100, problem);
      for (std::size_t i = 0; i < plan.survivors.size() && !moved; i += 50) {
        const Candidate& each = plan.survivors[i];
        moved = predict_us(each.config, problem, device, each.resources, 0) !=
                predict_us(each.config, problem, changed, each.resources, 0);
      }
    }
    CHECK(moved);
  }
}

TEST_CASE("the terms add up to the prediction") {
  const Plan plan = plan_on(kH200, gemm(1000, 1524, 4096));
  const Candidate& best = plan.default_config();
  double sum = 0;
  double total = 0;
  std::size_t alone = 0;
  for (const TimeTerm& term :
       predict_terms(best.config, plan.problem, device_named(kH200), best.resources, 0)) {
    INFO(term.label);
    CHECK(term.us >= 0);
    if (term.label == "total") {
      total = term.us;
    } else if (term.label.starts_with("alone: ")) {
      ++alone;
    } else {
      sum += term.us;
    }
  }
  CHECK(sum == Approx(best.predicted_us));
  CHECK(total == Approx(best.predicted_us));
  CHECK(alone == 10);
}

TEST_CASE("predictions are finite and positive from the smallest to the largest problem") {
  const std::int64_t top = 2147483647;
  const Problem problems[] = {gemm(1, 1, 1),
                              gemm(top, 1, 1),
                              gemm(1, top, 1),
                              gemm(1, 1, top),
                              gemm(top, top, top),
                              gemm(1, 1, 1, DType::fp32),
                              gemm(7, 33, 1, DType::tf32)};
  for (const Problem& problem : problems) {
    for (const DeviceSpec& device : io::known_devices()) {
      for (const HostTwin* kernel : find_family("gemm")->kernels) {
        for (const KernelSpace& space : gemm_space().kernels) {
          if (space.kernel != kernel->name()) continue;
          const std::int64_t size = size_of(space);
          for (std::int64_t i = 0; i < size; i += size / 40) {
            const Config config = config_at(*kernel, space, i);
            Resources resources;
            const auto verdict = check(config, problem, traits_of(problem), device, {}, &resources);
            if (verdict && !is_hard(verdict->rule)) continue;
            const double us = predict_us(config, problem, device, resources, 0);
            INFO(device.name << " " << describe(problem) << " " << to_string(config));
            REQUIRE(std::isfinite(us));
            REQUIRE(us > 0);
          }
        }
      }
    }
  }
}

}  // namespace autotune::search

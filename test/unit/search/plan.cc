#include "search/plan.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "autotune/io/load.h"
#include "fake_kernel.h"
#include "predictions.h"
#include "search/codes.h"
#include "search/request.h"

namespace autotune::search {
namespace {

std::int64_t total(const std::map<std::string, std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
}

Request fake_request(const Space& space, const Limits& limits) {
  static const DeviceSpec device = device_named("nvidia-h200");
  const Problem problem = fake_problem();
  return {&fake_family(), problem, traits_of(problem), &device, &space, &limits};
}

}  // namespace

TEST_CASE("the funnel counts every config once, under the first rule that it breaks") {
  const Space space = fake_space(
      {{"smem", {1024, 200000, 300000}}, {"threads", {100, 128, 2048}}, {"order", {0, 1}}});
  const Limits limits;
  const auto plan = make_plan(fake_request(space, limits));
  REQUIRE(plan);
  CHECK(plan->generated == 18);
  CHECK(plan->rejected == std::map<std::string, std::int64_t>{
                              {"structure:whole_warps", 6}, {"shared_memory", 4}, {"threads", 4}});
  CHECK(plan->survivors.size() == 4);
}

TEST_CASE("equal predictions are ordered by resources") {
  const Space space = fake_space({{"demand", {96, 64, 128}}, {"order", {1, 0}}});
  const Limits limits;
  const auto plan = make_plan(fake_request(space, limits));
  REQUIRE(plan);
  REQUIRE(plan->survivors.size() == 6);
  CHECK(plan->survivors[0].predicted_us == plan->survivors[5].predicted_us);
  CHECK(plan->survivors[0].config == fake_config({{"demand", 64}, {"order", 0}}));
  CHECK(plan->survivors[1].config == fake_config({{"demand", 64}, {"order", 1}}));
  CHECK(plan->survivors[5].config == fake_config({{"demand", 128}, {"order", 1}}));
}

TEST_CASE("a problem larger than the device's memory is said to be that") {
  const auto plan =
      make_plan(gemm(60000, 600000, 600000), device_named("nvidia-h200"), gemm_space(), {});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ErrorCode::nothing_fits);
  const std::string& message = plan.error().message;
  INFO(message);
  // (60000 x 600000 + 600000 x 600000 + 60000 x 600000) x 2 bytes.
  CHECK(message.find("required 864000000000 bytes") != std::string::npos);
  CHECK(message.find("structure") == std::string::npos);
  // Of the next one small tiles have too many blocks for a launch as well.
  const auto cube =
      make_plan(gemm(1000000, 1000000, 1000000), device_named("nvidia-h200"), gemm_space(), {});
  REQUIRE_FALSE(cube);
  INFO(cube.error().message);
  CHECK(cube.error().message.find("required 6000000000000 bytes") != std::string::npos);
}

TEST_CASE("where the user's own limits leave nothing, the message says that") {
  const DeviceSpec& h200 = device_named("nvidia-h200");
  Limits cap;
  cap.max_smem = 1000;
  const auto capped = make_plan(gemm(4096, 4096, 4096), h200, gemm_space(), cap);
  REQUIRE_FALSE(capped);
  INFO(capped.error().message);
  CHECK(capped.error().message.find("structure") == std::string::npos);
  CHECK(capped.error().message.find("limit 1000 bytes") != std::string::npos);
  Limits none;
  none.excludes = {parse_pattern("*", *find_family("gemm")).value()};
  const auto excluded = make_plan(gemm(4096, 4096, 4096), h200, gemm_space(), none);
  REQUIRE_FALSE(excluded);
  INFO(excluded.error().message);
  CHECK(excluded.error().message.find("were rejected by excluded") != std::string::npos);
}

TEST_CASE("where all break one constraint the message says what it asks for") {
  const Space space = fake_space({{"threads", {100}}});
  const Limits limits;
  const auto plan = make_plan(fake_request(space, limits));
  REQUIRE_FALSE(plan);
  INFO(plan.error().message);
  CHECK(plan.error().message.find("of 1 configs, 1 were rejected by structure:whole_warps (threads "
                                  "must be a multiple of 32)") != std::string::npos);
}

TEST_CASE("when nothing fits the message names the rule and the closest miss") {
  const Space space = fake_space({{"smem", {250000, 500000, 800000}}, {"threads", {128, 100}}});
  const Limits limits;
  const auto plan = make_plan(fake_request(space, limits));
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ErrorCode::nothing_fits);
  INFO(plan.error().message);
  CHECK(plan.error().message.find("of 6 configs, 3 were rejected by s") != std::string::npos);
  CHECK(plan.error().message.find("the closest miss is fake:smem=250000") != std::string::npos);
  CHECK(plan.error().message.find("required 250000 bytes, limit 232448 bytes (NVIDIA H200") !=
        std::string::npos);
  const auto candidate = default_candidate(fake_request(space, limits));
  REQUIRE_FALSE(candidate);
  CHECK(candidate.error().message == plan.error().message);

  Limits cap;
  cap.max_smem = 512;
  const Space small = fake_space({});
  const auto capped = make_plan(fake_request(small, cap));
  REQUIRE_FALSE(capped);
  CHECK(capped.error().message.find("lift the cap") != std::string::npos);
}

TEST_CASE("kernels that do not serve the problem are named, and none is nothing_fits") {
  const Plan fp32 = plan_on("nvidia-h200", gemm(64, 64, 64, DType::fp32));
  REQUIRE(fp32.unsupported.size() == 5);
  CHECK(fp32.unsupported[0].find("wgmma: ") == 0);
  CHECK(fp32.unsupported[1].find("wgmma_swap: ") == 0);
  CHECK(fp32.unsupported[2] == "wgmma_pack: multiplies bf16, fp16 and tf32 only");
  CHECK(fp32.unsupported[3] == "mma_bulk: multiplies bf16, fp16 and tf32 only");
  CHECK(fp32.unsupported[4] == "gemv: serves at most 16 rows of C");
  Problem exact = gemm(64, 64, 64, DType::fp32);
  exact.exact_fp32 = true;
  const Plan by_ffma = plan_on("nvidia-h200", exact);
  REQUIRE(by_ffma.unsupported.size() == 7);
  CHECK(by_ffma.unsupported[3] == "wgmma_fp32: --exact-fp32 asks for FFMA");
  CHECK(by_ffma.unsupported[4] == "mma: --exact-fp32 asks for FFMA");
  // The first reason counts, not that k is short as well.
  exact.k = 8;
  CHECK(plan_on("nvidia-h200", exact).unsupported.at(3) ==
        "wgmma_fp32: --exact-fp32 asks for FFMA");
  const Plan short_k = plan_on("nvidia-h200", gemm(64, 64, 8, DType::fp32));
  CHECK(std::count(short_k.unsupported.begin(), short_k.unsupported.end(),
                   "wgmma_fp32: is exact enough from k = 16 on") == 1);
  const auto turing = make_plan(gemm(64, 64, 64), device_named("tesla-t4"), gemm_space(), Limits{});
  REQUIRE_FALSE(turing);
  CHECK(turing.error().code == ErrorCode::nothing_fits);
  CHECK(turing.error().message.find("mma: ") != std::string::npos);
  CHECK(turing.error().message.find("simt: ") != std::string::npos);
}

TEST_CASE("bad requests are bad input") {
  const DeviceSpec& device = device_named("nvidia-h200");
  Problem problem = gemm(64, 64, 64);
  problem.family = "conv";
  const auto unknown = make_plan(problem, device, gemm_space(), Limits{});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::bad_input);
  problem = gemm(64, 64, 64);
  problem.m = 0;
  REQUIRE_FALSE(make_plan(problem, device, gemm_space(), Limits{}));
  REQUIRE_FALSE(default_candidate(gemm(64, 64, 64), device, fake_space({}), Limits{}));
}

TEST_CASE("real plans: the funnel adds up, every survivor passes, fastest first") {
  const Problem problems[] = {gemm(4096, 4096, 4096), gemm(1, 4096, 4096), gemm(1, 1, 1),
                              gemm(1000, 1524, 4096, DType::tf32),
                              gemm(100, 1524, 512, DType::fp32)};
  for (const Problem& problem : problems) {
    for (const std::string_view name :
         {"nvidia-h200", "nvidia-thor", "nvidia-geforce-rtx-3090", "orin"}) {
      INFO(name << " " << describe(problem));
      const DeviceSpec& device = device_named(name);
      const Plan plan = plan_on(name, problem);
      CHECK(plan.generated ==
            static_cast<std::int64_t>(plan.survivors.size()) + total(plan.rejected));
      CHECK(std::is_sorted(plan.survivors.begin(), plan.survivors.end(), ranks_before));
      CHECK(std::is_sorted(
          plan.survivors.begin(), plan.survivors.end(),
          [](const Candidate& a, const Candidate& b) { return a.predicted_us < b.predicted_us; }));
      bool all_pass = true;
      for (const Candidate& candidate : plan.survivors) {
        all_pass &= check_all(candidate.config, plan.problem, device, {}).empty();
      }
      CHECK(all_pass);
    }
  }
}

TEST_CASE("the default config is the front of the plan") {
  for (const Problem& problem : {gemm(4096, 4096, 4096), gemm(33, 7, 4097)}) {
    const auto alone =
        default_candidate(problem, device_named("nvidia-h200"), gemm_space(), Limits{});
    REQUIRE(alone);
    const Plan plan = plan_on("nvidia-h200", problem);
    CHECK(alone->config == plan.default_config().config);
    CHECK(alone->predicted_us == plan.default_config().predicted_us);
  }
}

TEST_CASE("where a problem is too large for a launch that is what nothing_fits says") {
  const auto candidate = default_candidate(gemm(1500000000, 1500000000, 1500000000),
                                           device_named("nvidia-h200"), gemm_space(), Limits{});
  REQUIRE_FALSE(candidate);
  CHECK(candidate.error().code == ErrorCode::nothing_fits);
  CHECK(candidate.error().message.find("grid, required") != std::string::npos);
}

TEST_CASE("the default config fits, on every known device, for the suite and at the extremes",
          "[long]") {
  std::vector<Problem> problems = {gemm(1, 1, 1), gemm(2147483647, 1, 1),
                                   gemm(100, 512, 1524, DType::fp32)};
  const auto suite = io::load_suite("gemm", {});
  REQUIRE(suite);
  for (const io::SuiteEntry& entry : suite->entries) problems.push_back(entry.problem);
  for (const DeviceSpec& device : io::known_devices()) {
    const std::vector<std::string>& offered = device.limits.mma_dtypes;
    const bool has_bf16 = std::find(offered.begin(), offered.end(), "bf16") != offered.end();
    for (const Problem& problem : problems) {
      INFO(device.name << " " << describe(problem));
      const auto candidate = default_candidate(problem, device, gemm_space(), Limits{});
      if (problem.dtype == DType::bf16 && !has_bf16) {
        REQUIRE_FALSE(candidate);
        continue;
      }
      REQUIRE(candidate);
      CHECK(check_all(candidate->config, problem, device, {}).empty());
    }
  }
}

TEST_CASE("a plan over the whole space takes little CPU time") {
  const std::clock_t begin = std::clock();
  const Plan plan = plan_on("nvidia-h200", gemm(4096, 4096, 4096));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  REQUIRE(plan.generated > 10000);
  // Well below a second; loose enough for a sanitizer's build.
  CHECK(seconds < 20);
}

TEST_CASE("the nearest that fits changes as few parameters as it can, by as little as it can") {
  const Problem problem = gemm(4096, 4096, 4096);
  const Plan plan = plan_on("nvidia-h200", problem);
  const auto too_deep = parse_config(
      "mma:block_m=256,block_n=128,block_k=64,stages=10,warps_m=4,warps_n=2,raster=1,swizzle=8",
      *find_family("gemm"));
  REQUIRE(too_deep);
  REQUIRE_FALSE(check_all(*too_deep, problem, device_named("nvidia-h200"), {}).empty());
  const auto nearest = nearest_that_fits(*too_deep, plan);
  REQUIRE(nearest);
  // 232448 bytes hold four stages of (256 + 128) x 64 x 2.
  Config expected = *too_deep;
  expected.values[3] = 4;
  CHECK(nearest->config == expected);
  CHECK(nearest_that_fits(plan.survivors[77].config, plan)->config == plan.survivors[77].config);
}

TEST_CASE("no single change suffices: the nearest is found by a search of all survivors") {
  const Space space = fake_space({{"smem", {1024, 4096, 65536}}, {"threads", {64, 128}}});
  const Limits limits;
  const auto plan = make_plan(fake_request(space, limits));
  REQUIRE(plan);
  // Both parameters must change; log2 distance prefers 65536 and 128.
  const auto nearest = nearest_that_fits(fake_config({{"smem", 526336}, {"threads", 2048}}), *plan);
  REQUIRE(nearest);
  CHECK(nearest->config == fake_config({{"smem", 65536}, {"threads", 128}}));
  CHECK_FALSE(nearest_that_fits(fake_config({}), Plan{}));
}

TEST_CASE("tile orders that come to the same launch are tried once") {
  // One row of tiles has one order, whatever raster and swizzle say.
  Limits tiles;
  for (const char* other : {"gemv", "wgmma", "wgmma_swap"}) {
    tiles.excludes.push_back(parse_pattern(other, *find_family("gemm")).value());
  }
  const Plan thin = plan_on("nvidia-h200", gemm(1, 4096, 4096), tiles);
  CHECK(sample_survivors(thin, -1, 7).size() == thin.survivors.size());
  CHECK(thin.rejected.at("same_launch") == 9 * static_cast<std::int64_t>(thin.survivors.size()));

  // 2 x 4 tiles: walks of 4 or more columns along m are the plain walk along n.
  const Problem few = *checked(gemm(256, 512, 4096));
  const Family& family = *find_family("gemm");
  const auto config_in = [&](const std::string& order) {
    const auto config = parse_config("mma:block_m=128,block_n=128," + order, family);
    REQUIRE(config);
    return *config;
  };
  const auto same = [&](const std::string& a, const std::string& b) {
    return same_launch(config_in(a), config_in(b), few);
  };
  CHECK_FALSE(same("raster=0,swizzle=2", "raster=0,swizzle=1"));
  CHECK_FALSE(same("raster=0,swizzle=2", "raster=1,swizzle=1"));
  CHECK(same("raster=0,swizzle=4", "raster=1,swizzle=1"));
  CHECK(same("raster=0,swizzle=16", "raster=1,swizzle=1"));
  CHECK(same("raster=1,swizzle=2", "raster=0,swizzle=1"));
  CHECK_FALSE(same("raster=1,swizzle=2,stages=4", "raster=0,swizzle=1"));
}

TEST_CASE(
    "orders of different widths whose walks are the same are the same launch, and take as long") {
  const DeviceSpec device = device_named("nvidia-h100-80gb-hbm3");
  const Problem nine = gemm(4096, 18 * 128, 4096);  // 9 columns of clusters of 1x2
  const auto config_in = [](const std::string& order) {
    return config_of("wgmma:block_m=128,block_n=128,block_k=64,stages=5,consumers=2,cluster_n=2," +
                     order);
  };
  const auto same = [&](const std::string& a, const std::string& b) {
    CAPTURE(a, b);
    if (!same_launch(config_in(a), config_in(b), nine)) return false;
    CHECK(predicted_us(config_in(a), nine, device) ==
          Approx(predicted_us(config_in(b), nine, device)));
    return true;
  };
  CHECK(same("raster=0,swizzle=8", "raster=0,swizzle=5"));  // 5 and 4
  CHECK_FALSE(same("raster=0,swizzle=8", "raster=0,swizzle=4"));
  CHECK(same("raster=0,swizzle=16", "raster=1,swizzle=1"));
  CHECK(same("raster=0,swizzle=9", "raster=1,swizzle=1"));
}

TEST_CASE("launches of different code are never the same") {
  const auto config = [](const char* text) { return *parse_config(text, *find_family("gemm")); };
  Problem problem;
  problem.m = problem.n = problem.k = 64;
  problem = *checked(problem);
  CHECK(same_launch(config("mma:stages=2,raster=0"), config("mma:stages=2,raster=1"), problem));
  CHECK_FALSE(same_launch(config("mma:stages=2"), config("mma:stages=3"), problem));
  CHECK_FALSE(same_launch(config("mma"), config("mma_bulk"), problem));
}

TEST_CASE("tiles begin at different k tiles only where that makes a difference") {
  const Family& family = *find_family("gemm");
  const auto differs = [&](const Problem& problem, const std::string& config) {
    const auto with = [&](const char* stagger) {
      return parse_config("wgmma:block_m=64,block_n=128,block_k=64," + config + stagger, family)
          .value();
    };
    return !same_launch(with(",stagger=8"), with(",stagger=0"), *checked(problem));
  };
  CHECK(differs(gemm(64, 4096, 4096), "split_k=1"));
  CHECK(differs(gemm(4096, 128, 4096), "split_k=1"));
  CHECK(differs(gemm(128, 4096, 4096), "split_k=1"));        // two tiles share each column of tiles
  CHECK_FALSE(differs(gemm(192, 4096, 4096), "split_k=1"));  // three do
  CHECK(differs(gemm(192, 4096, 4096), "split_k=1,cluster_m=2"));
  CHECK_FALSE(differs(gemm(64, 128, 4096), "split_k=1"));  // a single tile
  CHECK(differs(gemm(64, 4096, 1024), "split_k=1"));       // 16 k tiles
  CHECK_FALSE(differs(gemm(64, 4096, 960), "split_k=1"));
  CHECK_FALSE(differs(gemm(64, 4096, 1024), "split_k=2"));
}

TEST_CASE("sampled survivors are distinct code, seeded, and all of them on request") {
  const Plan plan = plan_on("nvidia-h200", gemm(4096, 4096, 4096));
  const auto sample = sample_survivors(plan, 200, 7);
  REQUIRE(sample.size() == 200);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      REQUIRE_FALSE(code_of(sample[i].config) == code_of(sample[j].config));
    }
  }
  const auto again = sample_survivors(plan, 200, 7);
  const auto other = sample_survivors(plan, 200, 8);
  const auto same = [&](const std::vector<Candidate>& list) {
    return std::equal(sample.begin(), sample.end(), list.begin(), list.end(),
                      [](const Candidate& a, const Candidate& b) { return a.config == b.config; });
  };
  CHECK(same(again));
  CHECK_FALSE(same(other));
  // Two rasters and five swizzles share one cubin, and wgmma's staggers.
  std::int64_t configs = 0;
  for (const Candidate& code : sample_survivors(plan, -1, 7)) {
    const std::vector<KernelSpace>& kernels = gemm_space().kernels;
    const auto space = std::find_if(kernels.begin(), kernels.end(), [&](const KernelSpace& each) {
      return each.kernel == code.config.kernel->name();
    });
    REQUIRE(space != kernels.end());
    configs += static_cast<std::int64_t>(TileOrders(*code.config.kernel, *space).count());
  }
  const auto survivors = static_cast<std::int64_t>(plan.survivors.size());
  CHECK(configs == survivors + plan.rejected.at("same_launch"));
}

TEST_CASE("sampled rejects are sound configs that a hard rule rejected") {
  const Problem problem = gemm(1000, 1524, 4096);
  const DeviceSpec& device = device_named("nvidia-geforce-rtx-3090");
  Limits limits;
  limits.max_smem = 150000;
  const auto rejects = sample_rejects(problem, device, gemm_space(), limits, 200, 3);
  REQUIRE(rejects.size() == 200);
  for (const Reject& reject : rejects) {
    INFO(to_string(reject.config));
    CHECK(is_hard(reject.verdict.rule));
    const auto verdict = check(reject.config, problem, traits_of(problem), device, limits, nullptr);
    CHECK(verdict == reject.verdict);
  }
  const auto again = sample_rejects(problem, device, gemm_space(), limits, 200, 3);
  CHECK(again[0].config == rejects[0].config);
  CHECK(again[199].config == rejects[199].config);
}

}  // namespace autotune::search

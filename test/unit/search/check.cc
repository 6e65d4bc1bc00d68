#include "search/check.h"

#include "autotune/io/builtin.h"
#include "fake_kernel.h"
#include "search/plan.h"
#include "test/support/catch.h"

namespace autotune::search {
namespace {

const DeviceSpec& h200() {
  static const DeviceSpec device = *io::find_device("nvidia-h200");
  return device;
}

std::optional<Verdict> verdict_of(const Config& config, const Limits& limits = {},
                                  const DeviceSpec& device = h200()) {
  const Problem problem = fake_problem();
  return check(config, problem, traits_of(problem), device, limits, nullptr);
}

}  // namespace

TEST_CASE("every rule passes at its limit and rejects one step above it") {
  struct Case {
    std::string_view parameter;
    std::int32_t fits;
    Verdict above;
  };
  const Case cases[] = {
      {"smem", 232448, {Rule::shared_memory, 232449, 232448}},
      {"static_smem", 49152, {Rule::shared_memory, 49153, 49152}},
      {"threads", 1024, {Rule::threads, 1056, 1024}},
      {"cluster", 8, {Rule::cluster, 9, 8}},
      {"barriers", 16, {Rule::barriers, 17, 16}},
      {"demand", 255, {Rule::predicted_spill, 256, 255}},
  };
  for (const Case& c : cases) {
    INFO(c.parameter);
    CHECK_FALSE(verdict_of(fake_config({{c.parameter, c.fits}})));
    const auto over = static_cast<std::int32_t>(c.above.required);
    CHECK(verdict_of(fake_config({{c.parameter, over}})) == c.above);
  }
}

TEST_CASE("static and dynamic shared memory count together") {
  CHECK_FALSE(verdict_of(fake_config({{"smem", 232448 - 512}, {"static_smem", 512}})));
  CHECK(verdict_of(fake_config({{"smem", 232448 - 512}, {"static_smem", 513}})) ==
        Verdict{Rule::shared_memory, 232449, 232448});
}

TEST_CASE("the opt-in limit is each GPU's own") {
  const DeviceSpec& rtx = *io::find_device("nvidia-geforce-rtx-4090");
  CHECK_FALSE(verdict_of(fake_config({{"smem", 101376}}), {}, rtx));
  CHECK(verdict_of(fake_config({{"smem", 102400}}), {}, rtx) ==
        Verdict{Rule::shared_memory, 102400, 101376});
}

TEST_CASE("code that needs more registers than the launch leaves cannot be compiled") {
  // 384 threads leave 168 registers each.
  CHECK_FALSE(verdict_of(fake_config({{"threads", 384}, {"min_registers", 168}})));
  CHECK(verdict_of(fake_config({{"threads", 384}, {"min_registers", 169}})) ==
        Verdict{Rule::registers, 384 * 176, 65536});
  // Nothing that can spill is rejected by this rule, down to the smallest cap there is.
  CHECK_FALSE(verdict_of(fake_config({{"threads", 1024}, {"demand", 32}, {"min_blocks", 2}})));
}

TEST_CASE("registers saved for blocks that cannot come are bad occupancy") {
  const Config two = fake_config({{"min_blocks", 2}, {"smem", 115712}});
  CHECK_FALSE(verdict_of(two));
  const Config none = fake_config({{"min_blocks", 2}, {"smem", 115713}});
  CHECK(verdict_of(none) == Verdict{Rule::occupancy, 2, 1});
  Limits keep;
  keep.keep_slow = true;
  CHECK_FALSE(verdict_of(none, keep));
  CHECK_FALSE(verdict_of(fake_config({{"demand", 256}}), keep));
}

TEST_CASE("grid and device memory are counted without overflow") {
  CHECK_FALSE(verdict_of(fake_config({{"grid", 2147483647}})));
  CHECK(verdict_of(fake_config({{"grid", 2147483647}, {"cluster", 2}})) ==
        Verdict{Rule::grid, 2147483648, 2147483647});

  const std::int64_t operands = 3LL * 4096 * 4096 * 2;
  DeviceSpec device = h200();
  device.dram_bytes = operands + (5 << 20);
  CHECK_FALSE(verdict_of(fake_config({{"workspace", 5}}), {}, device));
  CHECK(verdict_of(fake_config({{"workspace", 6}}), {}, device) ==
        Verdict{Rule::memory, operands + (6 << 20), operands + (5 << 20)});

  Problem huge;
  huge.m = huge.n = huge.k = 2147483647;
  huge = *checked(huge);
  const auto verdict = check(fake_config({}), huge, traits_of(huge), h200(), {}, nullptr);
  REQUIRE(verdict);
  CHECK(verdict->rule == Rule::memory);
  CHECK(verdict->required == 9223372036854775807);
}

TEST_CASE("device memory holds each matrix as it is stored, and both weights of a gated product") {
  const auto required = [](const Problem& problem) {
    DeviceSpec device = h200();
    device.dram_bytes = 1;
    const auto verdict = check(fake_config({}), problem, traits_of(problem), device, {}, nullptr);
    REQUIRE(verdict);
    CHECK(verdict->rule == Rule::memory);
    return verdict->required;
  };
  constexpr std::int64_t kSquare = 4096 * 4096;
  Problem problem = fake_problem();
  CHECK(required(problem) == 3 * kSquare * 2);
  problem.out_dtype = DType::fp32;
  CHECK(required(problem) == 2 * kSquare * 2 + kSquare * 4);
  problem = fake_problem();
  problem.family = "geglu";
  CHECK(required(problem) == 4 * kSquare * 2);
}

TEST_CASE("the user's cap is on static and dynamic shared memory together") {
  Limits limits;
  limits.max_smem = 1000;
  CHECK_FALSE(verdict_of(fake_config({{"smem", 600}, {"static_smem", 400}}), limits));
  CHECK(verdict_of(fake_config({{"smem", 600}, {"static_smem", 401}}), limits) ==
        Verdict{Rule::user_cap, 1001, 1000});
}

TEST_CASE("no cluster has more blocks than --max-sms leaves SMs") {
  Problem problem;
  problem.m = problem.n = problem.k = 4096;
  problem = *checked(problem);
  const auto verdict = [&](const char* text, int max_sms) {
    Limits limits;
    limits.max_sms = max_sms;
    limits.keep_slow = true;
    const Config config = *parse_config(text, *find_family("gemm"));
    return check(config, problem, traits_of(problem), h200(), limits, nullptr);
  };
  const char* const pair = "wgmma:block_m=128,block_n=128,cluster_m=2";
  CHECK(verdict(pair, 1) == Verdict{Rule::co_residency, 2, 1});
  CHECK_FALSE(verdict(pair, 2));
  CHECK_FALSE(verdict("wgmma:block_m=128,block_n=128", 1));
  CHECK(verdict("wgmma:block_m=128,block_n=128,cluster_m=2,cluster_n=2", 3) ==
        Verdict{Rule::co_residency, 4, 3});
  // Of three SMs a pair has two.
  Limits three;
  three.max_sms = 3;
  CHECK(resources_of(*parse_config(pair, *find_family("gemm")), problem, h200(), three).grid == 2);
  CHECK(reached_sms(h200(), 2, 3) == 2);
  CHECK(reached_sms(h200(), 4, 7) == 4);
}

TEST_CASE("blocks that wait for each other are as many as run at once, one on each SM") {
  Problem problem;
  problem.m = problem.n = 256;
  problem.k = 65536;
  problem = *checked(problem);
  const auto verdict = [&](const char* text, const DeviceSpec& device, int max_sms = 0) {
    const Config config = *parse_config(text, *find_family("gemm"));
    Limits limits;
    limits.max_sms = max_sms;
    return check(config, problem, traits_of(problem), device, limits, nullptr);
  };
  const auto waiting = [](std::int64_t blocks, std::int64_t limit) {
    return Verdict{Rule::co_residency, blocks, limit};
  };
  CHECK_FALSE(verdict("wgmma:block_m=128,block_n=128,split_k=33", h200()));
  CHECK(verdict("wgmma:block_m=128,block_n=128,split_k=34", h200()) == waiting(136, 132));
  CHECK_FALSE(verdict("wgmma:block_m=128,block_n=128,split_k=25", h200(), 100));
  CHECK(verdict("wgmma:block_m=128,block_n=128,split_k=26", h200(), 100) == waiting(104, 100));
  // Clusters of more than two blocks do not reach all SMs, and how many is known of few GPUs.
  const char* const four = "wgmma:block_m=128,block_n=128,cluster_m=2,cluster_n=2,split_k=30";
  CHECK_FALSE(verdict(four, h200()));
  CHECK(verdict("wgmma:block_m=128,block_n=128,cluster_m=2,cluster_n=2,split_k=31", h200()) ==
        waiting(124, 120));
  DeviceSpec unknown = h200();
  unknown.clustered_sms = 0;
  CHECK(verdict(four, unknown) == waiting(120, 0));
  CHECK_FALSE(verdict("wgmma:block_m=128,block_n=128,cluster_m=2,split_k=33", unknown));
  // Who leaves the sum to the last one waits for nobody.
  CHECK_FALSE(verdict("mma:block_m=32,block_n=32,warps_m=2,warps_n=2,split_k=16", h200()));
  CHECK(describe(waiting(136, 132), h200()) ==
        "too many blocks that wait for each other: required 136, limit 132 (NVIDIA H200, one on "
        "each SM that their clusters reach at once)");
  CHECK(describe(waiting(120, 0), unknown) ==
        "120 blocks that wait for each other: how many SMs their clusters reach at once is not "
        "known of NVIDIA H200 (clustered_sms of its file)");
}

TEST_CASE("clusters of more than two blocks are for rows that split lines") {
  const Config config = *parse_config(
      "wgmma:block_m=64,block_n=144,stages=6,consumers=1,cluster_m=4", *find_family("gemm"));
  const auto verdict = [&](std::int64_t k, const DeviceSpec& device, bool keep_slow = false) {
    Problem problem;
    problem.m = problem.n = 1000;
    problem.k = k;
    problem = *checked(problem);
    Limits limits;
    limits.keep_slow = keep_slow;
    return check(config, problem, traits_of(problem), device, limits, nullptr);
  };
  CHECK_FALSE(verdict(1000, h200()));
  CHECK(verdict(1024, h200()) == Verdict{Rule::wide_cluster, 4, 2});
  CHECK_FALSE(verdict(1024, h200(), true));
  DeviceSpec unknown = h200();
  unknown.clustered_sms = 0;
  CHECK(verdict(1000, unknown) == Verdict{Rule::wide_cluster, 4, 2});
}

TEST_CASE("a rejected config counts under its first rule, and explain sees all of them") {
  const Config bad =
      fake_config({{"threads", 1050}, {"smem", 526336}, {"barriers", 20}, {"demand", 40}});
  CHECK(verdict_of(bad)->rule == Rule::structure);
  Limits limits;
  limits.max_smem = 32768;
  std::vector<Rule> rules;
  for (const Verdict& verdict : check_all(bad, fake_problem(), h200(), limits)) {
    rules.push_back(verdict.rule);
  }
  CHECK(rules == std::vector<Rule>{Rule::structure, Rule::user_cap, Rule::shared_memory,
                                   Rule::threads, Rule::barriers});
  CHECK(check_all(fake_config({}), fake_problem(), h200(), {}).empty());
}

TEST_CASE("what cannot run at all is not said to run badly as well") {
  const auto rules_of = [](const Config& config) {
    std::vector<Rule> rules;
    for (const Verdict& verdict : check_all(config, fake_problem(), h200(), {})) {
      rules.push_back(verdict.rule);
    }
    return rules;
  };
  // Two blocks of 2048 threads: 32 registers each would spill, if such a block could be compiled.
  CHECK(rules_of(fake_config({{"threads", 2048}, {"demand", 200}, {"min_blocks", 2}})) ==
        std::vector<Rule>{Rule::threads});
  CHECK(rules_of(fake_config({{"smem", 300000}, {"min_blocks", 2}})) ==
        std::vector<Rule>{Rule::shared_memory});
  CHECK(rules_of(fake_config({{"demand", 300}})) == std::vector<Rule>{Rule::predicted_spill});
}

TEST_CASE("user limits: the cap acts as the limit, patterns exclude") {
  Limits limits;
  limits.max_smem = 32768;
  CHECK_FALSE(verdict_of(fake_config({{"smem", 32768}}), limits));
  CHECK(verdict_of(fake_config({{"smem", 526336}}), limits) ==
        Verdict{Rule::user_cap, 526336, 32768});
  CHECK(limits.restricts());

  Limits excludes;
  excludes.excludes.push_back(*parse_pattern("fake:threads=256,smem=*", fake_family()));
  CHECK(verdict_of(fake_config({{"threads", 256}}), excludes)->rule == Rule::excluded);
  CHECK_FALSE(verdict_of(fake_config({{"threads", 128}}), excludes));
}

TEST_CASE(
    "wgmma's own limits: columns of an instruction, registers to compile, what a role keeps") {
  Problem problem = fake_problem();
  problem.family = "gemm";
  const auto rules_of = [&](const std::string& parameters) {
    const auto config =
        parse_config("wgmma:block_k=64,stages=2,pingpong=0," + parameters, *find_family("gemm"));
    REQUIRE(config);
    std::vector<Verdict> verdicts = check_all(*config, problem, h200(), {});
    return verdicts;
  };
  CHECK(rules_of("block_m=128,block_n=256,consumers=2").empty());
  CHECK(rules_of("block_m=64,block_n=264,consumers=1") ==
        std::vector<Verdict>{{Rule::instruction, 264, 256}});
  // Four warpgroups launch with 128 registers each: 200 / 2 + 26 fit, 208 / 2 + 26 do not.
  CHECK(rules_of("block_m=192,block_n=200,consumers=3").empty());
  CHECK(rules_of("block_m=192,block_n=208,consumers=3") ==
        std::vector<Verdict>{{Rule::registers, 136 * 512, 65536}});
  // A consumer has 232 registers: 200 accumulators and 32 others, one column group more spills.
  CHECK(rules_of("block_m=256,block_n=200,consumers=2").empty());
  CHECK(rules_of("block_m=256,block_n=208,consumers=2") ==
        std::vector<Verdict>{{Rule::predicted_spill, 240, 232}});
}

TEST_CASE("a config that serves a few rows of C is refused for more") {
  const auto config = parse_config("gemv:block_m=8", *find_family("gemm"));
  REQUIRE(config);
  Problem problem;
  problem.n = problem.k = 4096;
  const auto verdict_for = [&](std::int64_t m) {
    problem.m = m;
    const Problem whole = *checked(problem);
    return check(*config, whole, traits_of(whole), h200(), {}, nullptr);
  };
  CHECK_FALSE(verdict_for(1));
  CHECK_FALSE(verdict_for(8));
  const auto verdict = verdict_for(9);
  CHECK(verdict == Verdict{Rule::rows, 9, 8});
  CHECK(describe(*verdict, *config, h200()) ==
        "too many rows of C: required 9, limit 8 (of this config)");

  Space space{"gemm", {{"gemv", {}}}};
  for (std::size_t i = 0; i < config->kernel->parameters().size(); ++i) {
    const Parameter& parameter = config->kernel->parameters()[i];
    space.kernels[0].parameters.push_back({std::string(parameter.name), {config->values[i]}});
  }
  problem.m = 16;
  auto plan = make_plan(problem, h200(), space, {});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message.find("1 were rejected by rows") != std::string::npos);
  problem.m = 129;
  plan = make_plan(problem, h200(), space, {});
  REQUIRE_FALSE(plan);
  CHECK(plan.error().message.find("gemv: serves at most 128 rows of C") != std::string::npos);
}

TEST_CASE("the resources come back with the verdict") {
  const Problem problem = fake_problem();
  Resources resources;
  CHECK_FALSE(check(fake_config({{"threads", 384}, {"smem", 2048}}), problem, traits_of(problem),
                    h200(), {}, &resources));
  CHECK(resources.threads == 384);
  CHECK(resources.smem_bytes == 2048);
}

TEST_CASE("verdicts read as sentences") {
  const Config config = fake_config({{"smem", 526336}});
  CHECK(describe(*verdict_of(config), config, h200()) ==
        "out of resource: shared memory, required 526336 bytes, limit 232448 bytes (NVIDIA H200, "
        "opt-in per block)");
  const Config odd = fake_config({{"threads", 100}});
  CHECK(describe(*verdict_of(odd), odd, h200()) ==
        "threads must be a multiple of 32 (whole_warps)");
}

TEST_CASE("roles of 4 + 4 + 4 warps against a function compiled for 256 threads") {
  Resources wanted;
  wanted.threads = (4 + 4 + 4) * 32;
  ActualResources actual;
  actual.registers = 100;
  actual.max_threads = 256;
  const auto verdict = check_compiled(wanted, actual, h200());
  CHECK(verdict == Verdict{Rule::threads, 384, 256});
  const std::string text = describe(*verdict, fake_config({}), h200());
  CHECK(text.find("out of resource: threads, required 384, limit 256") == 0);
  actual.max_threads = 384;
  CHECK_FALSE(check_compiled(wanted, actual, h200()));
}

TEST_CASE("a cubin is held against the device's limits") {
  Resources wanted;
  wanted.threads = 288;
  ActualResources good;
  good.registers = 168;
  good.max_threads = 288;
  REQUIRE_FALSE(check_compiled(wanted, good, h200()));

  ActualResources registers = good;
  registers.registers = 224;  // 288 x 224 < 65536, but 9 warps count as 12
  CHECK(check_compiled(wanted, registers, h200()) == Verdict{Rule::registers, 86016, 65536});
  ActualResources cluster = good;
  cluster.cluster = 16;
  CHECK(check_compiled(wanted, cluster, h200()) == Verdict{Rule::cluster, 16, 8});
  ActualResources barriers = good;
  barriers.barriers = 17;
  CHECK(check_compiled(wanted, barriers, h200()) == Verdict{Rule::barriers, 17, 16});
  Resources smem = wanted;
  smem.smem_bytes = 232448;
  ActualResources static_smem = good;
  REQUIRE_FALSE(check_compiled(smem, static_smem, h200()));
  static_smem.static_smem_bytes = 16;
  CHECK(check_compiled(smem, static_smem, h200()) == Verdict{Rule::shared_memory, 232464, 232448});
}

TEST_CASE("a mismatch names what differs and both numbers") {
  Resources predicted;
  predicted.threads = 256;
  predicted.barriers = 1;
  ActualResources actual;
  actual.max_threads = 256;
  actual.barriers = 1;
  CHECK(mismatch(predicted, actual).empty());
  ActualResources other = actual;
  other.max_threads = 512;
  CHECK(mismatch(predicted, other) == "threads per block: predicted 256, the cubin has 512");
  other = actual;
  other.static_smem_bytes = 16;
  CHECK(mismatch(predicted, other).find("shared memory: predicted 0, the cubin has 16") !=
        std::string::npos);
  other = actual;
  other.barriers = 16;
  CHECK(mismatch(predicted, other).find("barriers: predicted 1, the cubin has 16") !=
        std::string::npos);
  other = actual;
  other.cluster = 2;
  CHECK(mismatch(predicted, other).find("cluster: predicted 1, the cubin has 2") !=
        std::string::npos);
}

}  // namespace autotune::search

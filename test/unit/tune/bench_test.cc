#include "autotune/tune/bench.h"

#include "search/plan.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using test::h200;
using test::Setting;

BenchOptions fake_bench() {
  BenchOptions options;
  options.jobs = 2;
  options.worker = AUTOTUNE_FAKE_WORKER;
  return options;
}

std::vector<BenchItem> items(std::size_t count) {
  const Problem problem = test::small_problem();
  const auto plan = search::make_plan(problem, h200(), test::small_space(), {});
  REQUIRE(plan);
  REQUIRE(plan->survivors.size() >= count);
  std::vector<BenchItem> items;
  for (std::size_t i = 0; i < count; ++i) items.push_back({problem, plan->survivors[i].config});
  return items;
}

const std::atomic<bool> kNever{false};

}  // namespace

TEST_CASE("bench times what it is given, in order") {
  const auto asked = items(4);
  std::vector<std::string> seen;
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr,
      [&](const BenchRow& row) { seen.push_back(to_string(row.config)); }, kNever);
  REQUIRE(rows);
  REQUIRE(rows->size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const BenchRow& row = (*rows)[i];
    CHECK(row.outcome == Outcome::ok);
    CHECK(row.config == asked[i].config);
    CHECK(seen[i] == to_string(row.config));
    CHECK(row.measurement.median_us == Approx(test::fake_time_us(seen[i])));
    bool measured = false;
    const double floor = floor_us(h200(), row.problem.dtype, flops(row.problem),
                                  compulsory_bytes(row.problem), &measured);
    CHECK(row.floor_percent == Approx(100 * floor / row.measurement.median_us));
    CHECK_FALSE(row.baseline);
  }
}

TEST_CASE("bench sends the code of both of an MLP's kernels") {
  const test::FakeLog log;
  const Problem problem = test::small_mlp();
  const auto config_of = [](const char* text) {
    return parse_config(text, *find_family("geglu_mlp")).value();
  };
  const Config config = config_of("simt:block_m=64 + simt:block_m=32");
  std::vector<BenchItem> asked = items(1);
  asked.push_back({problem, config, config_of("simt:block_m=64 + simt:block_m=64")});
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  REQUIRE(rows->size() == 2);
  const BenchRow& row = rows->back();
  INFO(row.log);
  CHECK(row.outcome == Outcome::ok);
  CHECK(row.config == config);
  CHECK(row.measurement.median_us == Approx(test::fake_time_us(to_string(config))));
  REQUIRE(row.baseline);
  CHECK(row.baseline->name == to_string(*asked[1].baseline));
  CHECK(row.floor_percent > 0);
  // The first kernel is the same on both sides.
  CHECK(log.lines("compile").size() == 1 + 3);
  CHECK(log.lines("code") == std::vector<std::string>{"plain none", "gated plain", "gated plain"});
}

TEST_CASE("an MLP of which one kernel cannot run is a row with its reason") {
  const test::FakeLog log;
  const Problem problem = test::small_mlp();
  const auto config = parse_config("simt + mma:block_m=256,block_n=256,block_k=64,stages=8",
                                   *find_family("geglu_mlp"));
  REQUIRE(config);
  const auto rows = bench(
      {{problem, *config, {}}}, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  CHECK(rows->front().outcome == Outcome::pruned);
  CHECK(rows->front().log.find("mma cannot serve this problem") == 0);
  CHECK(log.lines("compile").empty());
}

TEST_CASE("bench compares with the baseline in pairs") {
  BenchOptions options = fake_bench();
  options.baseline = true;
  const auto rows = bench(
      items(1), h200(), 0, options, nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  const BenchRow& row = rows->front();
  REQUIRE(row.baseline);
  CHECK(row.baseline->name == "cublasLt #3");
  CHECK(row.baseline->candidates == 64);
  CHECK(row.speedup == Approx(row.baseline->median_us / row.measurement.median_us));
  CHECK(row.speedup_lo < row.speedup);
  CHECK(row.speedup_hi > row.speedup);
}

TEST_CASE("bench compares with another config in the same pairs, each item with its own") {
  auto asked = items(3);
  asked[0].baseline = asked[1].config;
  asked[2].baseline = asked[2].config;
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  REQUIRE((*rows)[0].baseline);
  CHECK((*rows)[0].baseline->name == to_string(asked[1].config));
  CHECK((*rows)[0].baseline->median_us == Approx(test::fake_time_us(to_string(asked[1].config))));
  CHECK((*rows)[0].baseline->candidates == 0);
  CHECK((*rows)[0].speedup ==
        Approx((*rows)[0].baseline->median_us / (*rows)[0].measurement.median_us));
  CHECK_FALSE((*rows)[1].baseline);
  REQUIRE((*rows)[2].baseline);
  CHECK((*rows)[2].speedup == Approx(1));
}

TEST_CASE("a baseline that cannot run is told apart from ours, and nothing is compiled for it") {
  const test::FakeLog log;
  auto asked = items(1);
  const auto huge =
      parse_config("mma:block_m=256,block_n=256,block_k=64,stages=8", *find_family("gemm"));
  REQUIRE(huge);
  asked[0].baseline = *huge;
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  CHECK((*rows)[0].outcome == Outcome::pruned);
  CHECK((*rows)[0].log.find("the baseline mma:block_m=256") == 0);
  CHECK(log.lines("compile").empty());
}

TEST_CASE("a config that cannot run is a row with its reason and is never compiled") {
  const test::FakeLog log;
  auto asked = items(2);
  const auto huge =
      parse_config("mma:block_m=256,block_n=256,block_k=64,stages=8", *find_family("gemm"));
  REQUIRE(huge);
  asked[0].config = *huge;
  asked[0].problem.dtype = asked[0].problem.out_dtype = DType::bf16;
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  CHECK((*rows)[0].outcome == Outcome::pruned);
  CHECK_FALSE((*rows)[0].log.empty());
  CHECK((*rows)[1].outcome == Outcome::ok);
  CHECK(log.lines("compile").size() == 1);
}

TEST_CASE("bench keeps the user's limits, but for the quality rules") {
  BenchOptions options = fake_bench();
  options.limits.max_smem = 64;
  const test::FakeLog log;
  const auto rows = bench(
      items(2), h200(), 0, options, nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  for (const BenchRow& row : *rows) {
    CHECK(row.outcome == Outcome::pruned);
    REQUIRE(row.verdict);
    CHECK(row.verdict->rule == Rule::user_cap);
  }
  CHECK(log.lines("compile").empty());
}

TEST_CASE("a failing config is a row, and the rows after it are timed") {
  const auto asked = items(3);
  const Setting rules("AUTOTUNE_FAKE_RULES", to_string(asked[0].config) + "=>kill");
  const auto rows = bench(
      asked, h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, kNever);
  REQUIRE(rows);
  CHECK((*rows)[0].outcome == Outcome::faulted);
  CHECK((*rows)[1].outcome == Outcome::ok);
  CHECK((*rows)[2].outcome == Outcome::ok);
}

TEST_CASE("a stopped bench is cancelled") {
  const std::atomic<bool> stop{true};
  const auto rows = bench(
      items(1), h200(), 0, fake_bench(), nullptr, [](const BenchRow&) {}, stop);
  REQUIRE_FALSE(rows);
  CHECK(rows.error().code == ErrorCode::cancelled);
}

}  // namespace autotune::tune

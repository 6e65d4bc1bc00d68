#include "autotune/tune/audit.h"

#include <algorithm>
#include <cstdlib>

#include "test/support/problems.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using test::h200;
using test::Setting;

struct Fixture {
  Fixture() {
    auto started = worker::CompilePool::start({AUTOTUNE_FAKE_WORKER}, 2);
    REQUIRE(started);
    pool.emplace(std::move(*started));
    Problem bf16 = test::small_problem();
    bf16.dtype = bf16.out_dtype = DType::bf16;
    space = *io::default_space("gemm");
    auto made = search::make_plan(bf16, h200(), space, limits);
    REQUIRE(made);
    plan = std::move(*made);
  }
  AuditReport run(const AuditOptions& options) {
    const std::atomic<bool> never{false};
    auto report = audit(
        plan, device, space, limits, options, *pool, memo,
        [this](std::int64_t done, std::int64_t total) {
          last = {done, total};
        },
        never);
    INFO((report ? std::string() : report.error().message));
    REQUIRE(report);
    return std::move(*report);
  }
  std::optional<worker::CompilePool> pool;
  DeviceSpec device = h200();
  search::Space space;
  search::Limits limits;
  search::Plan plan;
  CompiledMemo memo;
  std::pair<std::int64_t, std::int64_t> last;
};

}  // namespace

TEST_CASE("an audit of survivors counts what was compiled and how far the estimates are off") {
  Fixture fixture;
  const AuditReport report = fixture.run({20, 0, 3});
  CHECK(report.compiled == 20);
  CHECK(report.clean());
  CHECK(report.sampled == 0);
  CHECK(report.registers.samples == 20);
  CHECK(report.registers.p90 >= report.registers.median);
  CHECK(fixture.last == std::pair<std::int64_t, std::int64_t>(20, 20));
  CHECK(report.findings.empty());
}

TEST_CASE("rejected configs whose code fits the device are found, and no others") {
  Fixture fixture;
  // The fake cubins differ from the truth only in what the compiler decides, so what the device's
  // limits reject is confirmed by them.
  const AuditReport right = fixture.run({0, 40, 3});
  CHECK(right.sampled > 0);
  CHECK(right.clean());

  // Too few for wide wgmma instructions, of which the fake compiler's cubins tell nothing.
  fixture.device.limits.registers_per_thread = 100;
  const AuditReport report = fixture.run({0, 40, 3});
  REQUIRE(report.false_rejects > 0);
  CHECK(report.false_rejects < report.sampled);
  for (const std::string& finding : report.findings) {
    CHECK(finding.find("was rejected, but can run") != std::string::npos);
  }
  CHECK(static_cast<std::int64_t>(report.findings.size()) == report.false_rejects);
}

TEST_CASE("failures, mismatches and false passes are findings") {
  for (const auto& [word, text] : {std::pair<std::string, std::string>("fail", "does not compile"),
                                   {"narrow", "the cubin has"},
                                   {"greedy", "cannot run: out of resource: registers"},
                                   {"abort", "signal 6"}}) {
    INFO(word);
    const Setting rules("AUTOTUNE_FAKE_RULES", "THREADS=>" + word);
    Fixture fixture;
    const AuditReport report = fixture.run({5, 0, 3});
    CHECK_FALSE(report.clean());
    REQUIRE(report.findings.size() >= 5);
    CHECK(report.findings[0].find(text) != std::string::npos);
    CHECK(report.failed == (word == "fail" || word == "abort" ? 5 : 0));
    CHECK(report.mismatches == (word == "narrow" ? 5 : 0));
    CHECK(report.false_passes == (word == "greedy" || word == "narrow" ? 5 : 0));
  }
}

TEST_CASE("spills are counted against what was predicted") {
  const Setting rules("AUTOTUNE_FAKE_RULES", "THREADS=>spill");
  Fixture fixture;
  const AuditReport report = fixture.run({10, 40, 3});
  CHECK(report.spill_missed == 10);
  REQUIRE(fixture.plan.rejected.count("predicted_spill"));
  CHECK(report.spill_predicted > 0);
  CHECK(report.spill_right == report.spill_predicted);
}

TEST_CASE("what does not compile spills nothing and is no false reject") {
  for (const bool compiles : {true, false}) {
    const Setting rules("AUTOTUNE_FAKE_RULES", compiles ? "" : "THREADS=>fail");
    Fixture fixture;
    const AuditReport report = fixture.run({10, 40, 3});
    CHECK(report.sampled > 0);
    CHECK(report.false_rejects == 0);
    CHECK((report.spill_predicted > 0) == compiles);
    CHECK(report.spill_right == 0);  // no fake code does
    CHECK(report.spill_missed == 0);
  }
}

TEST_CASE("half of the estimates of registers are off by the median or less, nine tenths by p90") {
  Fixture fixture;
  const AuditReport report = fixture.run({60, 0, 3});
  std::int64_t within_median = 0;
  std::int64_t beyond_median = 0;
  std::int64_t within_p90 = 0;
  std::int64_t beyond_p90 = 0;
  for (const auto& [config, resources, predicted_us] :
       search::sample_survivors(fixture.plan, 60, 3)) {
    const int actual = resources.threads > 512 ? 64 : 100;  // the fake compiler's
    const int off = std::abs(resources.registers - actual);
    within_median += off <= report.registers.median;
    beyond_median += off >= report.registers.median;
    within_p90 += off <= report.registers.p90;
    beyond_p90 += off >= report.registers.p90;
  }
  CHECK(within_median >= 30);
  CHECK(beyond_median >= 30);
  CHECK(within_p90 >= 54);
  CHECK(beyond_p90 >= 6);
}

TEST_CASE("what is rejected for the device's memory is no false reject by a byte") {
  struct Case {
    Problem problem;
    std::int64_t bytes;  // of its matrices
  };
  const Problem gated = test::geglu(2000, 600, 1000, DType::bf16, Layout::tn, Activation::silu);
  for (const auto& [problem, bytes] :
       {Case{test::gemm(2000, 600, 1000), 2 * (2000 * 1000 + 600 * 1000 + 2000 * 600)},
        Case{gated, 2 * (2000 * 1000 + 2 * 600 * 1000 + 2000 * 600)}}) {
    INFO(describe(problem));
    Fixture fixture;
    fixture.plan = {};
    fixture.plan.problem = problem;
    fixture.space = *io::default_space(problem.family);
    fixture.device.dram_bytes = bytes - 1;
    const AuditReport report = fixture.run({0, 60, 3});
    CHECK(report.sampled == 60);
    const auto rejects = search::sample_rejects(problem, fixture.device, fixture.space, {}, 60, 3);
    CHECK(std::any_of(rejects.begin(), rejects.end(), [](const search::Reject& each) {
      return each.verdict.rule == Rule::memory;
    }));
    for (const std::string& finding : report.findings) {  // of what the fake compiler does not know
      CHECK(finding.find("device memory") == std::string::npos);
    }
  }
}

TEST_CASE("a memo spares what was compiled before") {
  const test::FakeLog log;
  Fixture fixture;
  fixture.run({15, 0, 3});
  const std::size_t first = log.lines("compile").size();
  CHECK(first == 15);
  const AuditReport again = fixture.run({15, 0, 3});
  CHECK(again.compiled == 15);
  CHECK(log.lines("compile").size() == first);
}

TEST_CASE("a stopped audit is cancelled and leaves no false memory") {
  Fixture fixture;
  const std::atomic<bool> stop{true};
  const auto stopped = audit(
      fixture.plan, h200(), fixture.space, fixture.limits, {10, 0, 3}, *fixture.pool, fixture.memo,
      [](auto, auto) {}, stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(fixture.memo.empty());
}

TEST_CASE(
    "an audit that is stopped halfway remembers what was compiled, and the next does the rest") {
  Fixture fixture;
  const test::FakeLog log;
  std::atomic<bool> stop{false};
  const auto stopped = audit(
      fixture.plan, h200(), fixture.space, fixture.limits, {30, 0, 3}, *fixture.pool, fixture.memo,
      [&](std::int64_t done, std::int64_t) { stop = done >= 5; }, stop);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(fixture.memo.size() >= 5);
  CHECK(fixture.memo.size() < 30);
  for (const auto& [key, reply] : fixture.memo) CHECK_FALSE(reply.actual.registers == 0);
  const AuditReport report = fixture.run({30, 0, 3});
  CHECK(report.compiled == 30);
  CHECK(report.clean());
  CHECK(fixture.memo.size() == 30);
}

}  // namespace autotune::tune

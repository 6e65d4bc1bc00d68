#include <sqlite3.h>

#include <cmath>
#include <limits>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

Store fresh(const TempFolder& folder) {
  auto store = Store::open(folder / "cache.db", Access::read_write);
  REQUIRE(store);
  REQUIRE(store->writable());
  REQUIRE(store->message().empty());
  return std::move(*store);
}

TrialRecord full_trial() {
  TrialRecord trial = sample_trial(7);
  trial.problem.dtype = DType::fp32;
  trial.problem.out_dtype = DType::fp32;
  trial.problem.exact_fp32 = true;
  trial.problem.activation = Activation::silu;
  trial.problem.layout = Layout::nt;
  trial.problem.alpha = 0.1;
  trial.problem.beta = -2.5;
  trial.problem.mode = TimingMode::hot;
  trial.problem.lda = 5000;
  trial.outcome = Outcome::launch_failed;
  trial.verdict = Verdict{Rule::threads, 384, 256, 3};
  // The fields in their order; role_registers, the seventh, is not kept.
  trial.predicted = {1LL << 40, 2, 3, 4, 5, 6, 0, 7, 8, 1LL << 33, 10};
  trial.actual = {11, 12, 13, 14, 15, 16, 17, 18, true};
  trial.measurement = {1.25, 0.001, 33, 1e-3, 0.5, 1980, true, true};
  trial.compile_seconds = 3.75;
  trial.log = std::string{"line one\nline two with a zero \0 byte and \xff", 42};
  trial.time = 1'700'000'000;
  return trial;
}

void check_equal(const TrialRecord& a, const TrialRecord& b) {
  CHECK(a.id == b.id);
  CHECK(a.run == b.run);
  CHECK(a.key == b.key);
  CHECK(a.problem == b.problem);
  CHECK(a.outcome == b.outcome);
  CHECK(a.verdict == b.verdict);
  CHECK(a.predicted.smem_bytes == b.predicted.smem_bytes);
  CHECK(a.predicted.static_smem_bytes == b.predicted.static_smem_bytes);
  CHECK(a.predicted.threads == b.predicted.threads);
  CHECK(a.predicted.min_blocks == b.predicted.min_blocks);
  CHECK(a.predicted.registers == b.predicted.registers);
  CHECK(a.predicted.register_demand == b.predicted.register_demand);
  CHECK(a.predicted.barriers == b.predicted.barriers);
  CHECK(a.predicted.cluster == b.predicted.cluster);
  CHECK(a.predicted.grid == b.predicted.grid);
  CHECK(a.predicted.workspace_bytes == b.predicted.workspace_bytes);
  CHECK(a.actual == b.actual);
  CHECK(a.measurement.median_us == b.measurement.median_us);
  CHECK(a.measurement.relative_error == b.measurement.relative_error);
  CHECK(a.measurement.samples == b.measurement.samples);
  CHECK(a.measurement.result_error == b.measurement.result_error);
  CHECK(a.measurement.max_error_ratio == b.measurement.max_error_ratio);
  CHECK(a.measurement.sm_mhz == b.measurement.sm_mhz);
  CHECK(a.measurement.throttled == b.measurement.throttled);
  CHECK(a.measurement.raced == b.measurement.raced);
  CHECK(a.compile_seconds == b.compile_seconds);
  CHECK(a.log == b.log);
  CHECK(a.time == b.time);
}

TEST_CASE("a trial comes back as it was recorded, also after reopening") {
  const TempFolder folder;
  TrialRecord trial = full_trial();
  {
    Store store = fresh(folder);
    const auto run =
        store.begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "13.0", "0.1", "{}", "h"});
    REQUIRE(run);
    trial.run = *run;
    REQUIRE(store.record(trial));
    CHECK(trial.id > 0);
    const auto found = store.trial(trial.key);
    REQUIRE((found && *found));
    check_equal(**found, trial);
  }
  const auto reader = Store::open(folder / "cache.db", Access::read_only);
  REQUIRE(reader);
  const auto found = reader->trial(trial.key);
  REQUIRE((found && *found));
  check_equal(**found, trial);
}

TEST_CASE("NaN and infinity in a measurement are kept") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord trial = sample_trial(1);
  trial.outcome = Outcome::wrong_result;
  trial.measurement.result_error = std::numeric_limits<double>::quiet_NaN();
  trial.measurement.max_error_ratio = std::numeric_limits<double>::infinity();
  REQUIRE(store.record(trial));
  const auto found = store.trial(trial.key);
  REQUIRE((found && *found));
  CHECK(std::isnan((*found)->measurement.result_error));
  CHECK(std::isinf((*found)->measurement.max_error_ratio));
}

TEST_CASE("a second record under the same key replaces the first and keeps its id") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord first = sample_trial(1);
  REQUIRE(store.record(first));
  TrialRecord second = sample_trial(1);
  second.measurement.median_us = 5;
  REQUIRE(store.record(second));
  CHECK(second.id == first.id);
  const auto all = store.trials(first.key.problem_key, kDevice);
  REQUIRE(all);
  REQUIRE(all->size() == 1);
  CHECK(all->front().measurement.median_us == 5);
}

TEST_CASE("every part of the key tells trials apart") {
  const TempFolder folder;
  Store store = fresh(folder);
  const TrialRecord base = sample_trial(1);
  for (const auto part : {&TrialKey::problem_key, &TrialKey::device_fingerprint, &TrialKey::config,
                          &TrialKey::source_hash, &TrialKey::compiler}) {
    TrialRecord trial = base;
    trial.key.*part += "x";
    REQUIRE(store.record(trial));
    const auto other = store.trial(base.key);
    REQUIRE(other);
    CHECK_FALSE(*other);
    const auto own = store.trial(trial.key);
    REQUIRE((own && *own));
    CHECK((*own)->key == trial.key);
  }
}

TEST_CASE("the trials of a problem on a device, and no others, in the order of recording") {
  const TempFolder folder;
  Store store = fresh(folder);
  for (int i = 0; i < 5; ++i) {
    TrialRecord here = sample_trial(i);
    TrialRecord elsewhere = sample_trial(i, 100);
    TrialRecord other_gpu = sample_trial(i);
    other_gpu.key.device_fingerprint = "another";
    for (TrialRecord* trial : {&here, &elsewhere, &other_gpu}) REQUIRE(store.record(*trial));
  }
  const auto found = store.trials(sample_trial(0).key.problem_key, kDevice);
  REQUIRE(found);
  REQUIRE(found->size() == 5);
  for (int i = 0; i < 5; ++i) CHECK((*found)[i].key == sample_trial(i).key);
}

TEST_CASE("the problems with trials on a device are listed without a winner too") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord here = sample_trial(1, 100);
  TrialRecord again = sample_trial(2, 100);
  TrialRecord other = sample_trial(1, 200);
  TrialRecord elsewhere = sample_trial(1, 300);
  elsewhere.key.device_fingerprint = "another";
  for (TrialRecord* trial : {&other, &here, &again, &elsewhere}) REQUIRE(store.record(*trial));
  CHECK(store.problem_keys("gemm", kDevice) ==
        std::vector{here.key.problem_key, other.key.problem_key});
  CHECK(store.problem_keys("geglu", kDevice)->empty());
}

TEST_CASE("a long log is cut and a missing time is filled in") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord trial = sample_trial(1);
  trial.log.assign(1 << 20, 'e');
  REQUIRE(store.record(trial));
  const auto found = store.trial(trial.key);
  REQUIRE((found && *found));
  CHECK((*found)->log == std::string(16384, 'e'));
  CHECK((*found)->time > 1'700'000'000);
}

TEST_CASE("runs are ended once they are known, and trials belong to known runs") {
  const TempFolder folder;
  Store store = fresh(folder);
  const auto run = store.begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "", "0.1", "{}", "host"});
  REQUIRE(run);
  REQUIRE(store.end_run(*run, {{"shared_memory", 12}, {"structure:x", 3}}));
  REQUIRE(store.end_run(*run, {{"shared_memory", 13}}));

  const auto unknown = store.end_run(*run + 1, {});
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::bad_input);
  TrialRecord stray = sample_trial(1);
  stray.run = *run + 1;
  CHECK_FALSE(store.record(stray));
  const auto found = store.trial(stray.key);
  REQUIRE(found);
  CHECK_FALSE(*found);

  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open((folder / "cache.db").c_str(), &db) == SQLITE_OK);
  sqlite3_stmt* rows = nullptr;
  const char* sql = "SELECT sum(configs), max(ended > 0) FROM rejected JOIN run ON run.id = run";
  REQUIRE(sqlite3_prepare_v2(db, sql, -1, &rows, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(rows) == SQLITE_ROW);
  CHECK(sqlite3_column_int(rows, 0) == 16);
  CHECK(sqlite3_column_int(rows, 1) == 1);
  sqlite3_finalize(rows);
  sqlite3_close(db);
}

TEST_CASE("a pattern's words are each looked for in a problem's key") {
  Problem problem = sample_problem(64);
  const std::string gemm = problem_key(problem);
  for (const char* pattern :
       {"", "m=64 n=1524", "n=1524 m=64", "m=64 k=512", " m=64\t n=1524 ", "gemm", "family=gemm",
        "bf16", "tn bf16", "layout=tn", "dtype=bf16 out=bf16", "mode=cold beta=0", "m=64 m=64"}) {
    INFO(pattern);
    CHECK(names_problem(pattern, gemm));
  }
  for (const char* pattern :
       {" ", "m=6", "m=640", "=64", "64", "0", "cold", "m=64 n=64", "m=64 nt", "fp32",
        "family=", "family=geglu", "tokens=64", "m=64,n=1524", "m= 64", "M=64", "M=64 n=1524"}) {
    INFO(pattern);
    CHECK_FALSE(names_problem(pattern, gemm));
  }
  problem.family = "geglu_mlp";
  problem.ldc = 0;
  const std::string mlp = problem_key(*checked(problem));
  for (const char* pattern : {"tokens=64", "intermediate=1524 tokens=64 hidden=512",
                              "family=geglu_mlp", "k=512 m=64", "activation=gelu_tanh"}) {
    INFO(pattern);
    CHECK(names_problem(pattern, mlp));
  }
  for (const char* pattern : {"hidden=1524", "intermediate=512", "tokens=6", "gemm", "geglu"}) {
    INFO(pattern);
    CHECK_FALSE(names_problem(pattern, mlp));
  }
}

TEST_CASE("removing one GPU's trials leaves cubins and the other GPUs' trials") {
  const TempFolder folder;
  Store store = fresh(folder);
  TrialRecord here = sample_trial(1);
  TrialRecord in_part = sample_trial(1);
  in_part.key.device_fingerprint += " max_sms=8";
  TrialRecord elsewhere = sample_trial(1);
  elsewhere.key.device_fingerprint = "NVIDIA H200 NVL cc=90 sms=132 smem=232448 memory=160GiB";
  for (TrialRecord* trial : {&here, &in_part, &elsewhere}) REQUIRE(store.record(*trial));
  REQUIRE(store.put_cubin(sample_cubin_key(1), sample_cubin(1)));
  CHECK(*store.remove("", "NVIDIA H20") == 0);
  CHECK(*store.remove("m=1", "nvidia-h200") == 0);
  CHECK(*store.remove("", "nvidia-h200") == 2);
  CHECK(store.trials(elsewhere.key.problem_key, elsewhere.key.device_fingerprint)->size() == 1);
  CHECK(store.cubin(sample_cubin_key(1))->has_value());
}

TEST_CASE("removing by a part of the problem's key takes trials and winners") {
  const TempFolder folder;
  Store store = fresh(folder);
  for (int i = 0; i < 3; ++i) {
    for (const std::int64_t m : {100, 200}) {
      TrialRecord trial = sample_trial(i, m);
      REQUIRE(store.record(trial));
      REQUIRE(store.crown({trial}));
    }
  }
  REQUIRE(store.put_cubin(sample_cubin_key(1), sample_cubin(1)));
  CHECK(*store.remove("m=10") == 0);  // whole words
  CHECK(*store.remove(" ") == 0);
  const auto some = store.remove("bf16 m=100");
  REQUIRE(some);
  CHECK(*some == 3);
  CHECK(store.trials(sample_trial(0, 100).key.problem_key, kDevice)->empty());
  CHECK(store.trials(sample_trial(0, 200).key.problem_key, kDevice)->size() == 3);
  CHECK(store.winners("gemm", "")->size() == 1);
  CHECK(*store.remove("no such key") == 0);
  CHECK(store.cubin(sample_cubin_key(1))->has_value());

  CHECK(*store.remove("") == 3);
  CHECK(store.winners("gemm", "")->empty());
  CHECK_FALSE(store.cubin(sample_cubin_key(1))->has_value());
  const auto problems = store.verify();
  REQUIRE(problems);
  CHECK(problems->findings.empty());
  CHECK(problems->trials == 0);
}

}  // namespace
}  // namespace autotune::cache

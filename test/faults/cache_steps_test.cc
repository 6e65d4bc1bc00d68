// A writer that is killed, or whose disk fails, at each single step that reaches the disk.
#include <signal.h>

#include "test/faults/fault_vfs.h"
#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;
using test::Fault;
using test::FaultPlan;

constexpr int kOld = 4;  // trials that were stored before

void prepare(const fs::path& file) {
  auto store = Store::open(file, Access::read_write);
  REQUIRE(store);
  for (int i = 0; i < kOld; ++i) {
    TrialRecord trial = sample_trial(i);
    REQUIRE(store->record(trial));
    REQUIRE(store->crown({trial}));
    REQUIRE(store->put_cubin(sample_cubin_key(i), sample_cubin(i)));
  }
}

// All that a writer does, on a store that may be new; how many trials it was told are stored.
// A refusal must be one of the disk.
struct Written {
  int trials = 0;
  std::string wrong;
};

Written write_some(const fs::path& file) {
  Written written;
  const auto sound = [&](const Error& error) {
    if (error.code != ErrorCode::io_failed) written.wrong = error.message;
    return false;
  };
  auto store = Store::open(file, Access::read_write);
  if (!store) {
    sound(store.error());
    return written;
  }
  if (store->message().find("fresh one") != std::string::npos) written.wrong = store->message();
  const auto run = store->begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "", "", "{}", ""});
  if (!run) sound(run.error());
  for (int i = kOld; i < kOld + 3; ++i) {
    TrialRecord trial = sample_trial(i);
    if (const auto done = store->put_cubin(sample_cubin_key(i), sample_cubin(i)); !done) {
      sound(done.error());
    }
    const auto recorded = store->record(trial);
    // Trials are recorded in order: one after a failure would hide which were lost.
    if (!recorded && !sound(recorded.error())) break;
    ++written.trials;
    if (const auto done = store->crown({trial}); !done) sound(done.error());
  }
  return written;
}

// After the fault: the file opens without a word, is sound, and holds what it must.
std::string check_sound(const fs::path& file, int least, int most) {
  auto store = Store::open(file, Access::read_write);
  if (!store) return store.error().message;
  if (!store->message().empty()) return store->message();
  const auto problems = store->verify();
  if (!problems) return problems.error().message;
  if (!problems->findings.empty()) return problems->findings.front();
  const auto trials = store->trials(sample_trial(0).key.problem_key, kDevice);
  if (!trials) return trials.error().message;
  const int count = static_cast<int>(trials->size());
  if (count < least || count > most) return fmt::format("{} trials", count);
  if (least < kOld) return "";
  const auto winner = store->winner(sample_trial(0).key.problem_key, kDevice);
  if (!winner || !*winner) return "no winner";
  for (int i = 0; i < kOld; ++i) {
    const auto cubin = store->cubin(sample_cubin_key(i));
    if (!cubin || !*cubin) return "a cubin is gone";
  }
  return "";
}

int steps_of(const FaultPlan& plan, const fs::path& file) {
  const std::string said = in_child([&] {
    test::use_fault_vfs({plan.fault, 1 << 30, true});
    const Written written = write_some(file);
    if (!written.wrong.empty()) return written.wrong;
    return std::to_string(test::fault_steps());
  });
  INFO(said);
  REQUIRE(!said.empty());
  REQUIRE(said.find_first_not_of("0123456789") == std::string::npos);
  return std::stoi(said);
}

// Runs write_some() with each step as the one of the fault, on a new and on an existing cache.
template <class Check>
void at_every_step(Fault fault, bool for_good, const Check& check) {
  for (const bool existing : {true, false}) {
    const TempFolder pattern;
    if (existing) prepare(pattern / "cache.db");
    const auto fresh = [&](const TempFolder& folder) {
      if (existing) fs::copy_file(pattern / "cache.db", folder / "cache.db");
    };
    const TempFolder counting;
    fresh(counting);
    const int steps = steps_of({fault, 0, for_good}, counting / "cache.db");
    CHECK(steps > 20);
    for (int at = 1; at <= steps; ++at) {
      CAPTURE(existing, at);
      const TempFolder folder;
      fresh(folder);
      check(folder / "cache.db", FaultPlan{fault, at, for_good}, existing ? kOld : 0);
    }
  }
}

TEST_CASE("kill -9 at every step that writes loses at most the trial in flight") {
  at_every_step(Fault::kill, true, [](const fs::path& file, const FaultPlan& plan, int old) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      test::use_fault_vfs(plan);
      auto store = Store::open(file, Access::read_write);
      for (int i = kOld; store && i < kOld + 3; ++i) {
        TrialRecord trial = sample_trial(i);
        if (!store->put_cubin(sample_cubin_key(i), sample_cubin(i))) _exit(2);
        if (!store->record(trial) || write(ends[1], "x", 1) != 1) _exit(3);
        if (!store->crown({trial})) _exit(4);
      }
      _exit(0);
    }
    close(ends[1]);
    int status = 0;
    waitpid(writer, &status, 0);
    int told = 0;
    for (char token = 0; read(ends[0], &token, 1) == 1;) ++told;
    close(ends[0]);
    CHECK((WIFSIGNALED(status) || status == 0));
    CHECK(check_sound(file, old + told, old + told + 1) == "");
  });
}

TEST_CASE("a write that fails, once or for good, loses nothing that was stored") {
  const bool for_good = GENERATE(true, false);
  const Fault fault = GENERATE(Fault::write, Fault::full);
  at_every_step(fault, for_good, [](const fs::path& file, const FaultPlan& plan, int old) {
    const std::string said = in_child([&]() -> std::string {
      test::use_fault_vfs(plan);
      const Written written = write_some(file);
      if (!written.wrong.empty()) return written.wrong;
      test::use_fault_vfs({});
      // A commit that failed at its very end may have happened.
      return check_sound(file, old + written.trials, old + written.trials + 1);
    });
    CHECK(said == "");
  });
}

TEST_CASE("a read that fails is no damage: nothing is moved aside") {
  const bool for_good = GENERATE(true, false);
  at_every_step(Fault::read, for_good, [](const fs::path& file, const FaultPlan& plan, int old) {
    const std::string said = in_child([&]() -> std::string {
      test::use_fault_vfs(plan);
      const Written written = write_some(file);
      if (!written.wrong.empty()) return written.wrong;
      test::use_fault_vfs({});
      return check_sound(file, old + written.trials, old + 3);
    });
    CHECK(said == "");
    CHECK(named(file.parent_path(), "cache.db.corrupt-").empty());
  });
}

}  // namespace
}  // namespace autotune::cache

// Writers that are killed at any moment, and writers and readers that work at the same time.
#include <signal.h>
#include <sqlite3.h>

#include <chrono>
#include <random>
#include <set>
#include <thread>

#include "test/faults/length.h"
#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;
using Clock = std::chrono::steady_clock;

std::set<std::string> configs_in(const Store& store) {
  std::set<std::string> configs;
  const auto trials = store.trials(sample_trial(0).key.problem_key, kDevice);
  REQUIRE(trials);
  for (const TrialRecord& trial : *trials) configs.insert(trial.key.config);
  return configs;
}

// Records trials from number `first` on, each with a cubin and a crown now and then, and reports
// every trial that the store said it has.
[[noreturn]] void write_until_killed(const fs::path& file, int first, int report) {
  auto store = Store::open(file, Access::read_write);
  if (!store) _exit(1);
  for (int i = first;; ++i) {
    TrialRecord trial = sample_trial(i);
    if (!store->put_cubin(sample_cubin_key(i % 50), sample_cubin(i))) _exit(2);
    if (!store->record(trial)) _exit(3);
    if (write(report, &i, sizeof i) != sizeof i) _exit(4);
    if (i % 5 == 0 && !store->crown({trial})) _exit(5);
  }
}

TEST_CASE("kill -9 of a writer at random moments loses at most the trial in flight") {
  const int rounds = test::whole_form() ? 100 : 30;
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  std::mt19937 random{test::fault_seed("kill -9 of a writer")};
  std::uniform_int_distribution<int> moment{0, 250'000};
  int reported = -1;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      close(ends[0]);
      write_until_killed(file, reported + 1, ends[1]);
    }
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds{moment(random)});
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    int number = 0;
    while (read(ends[0], &number, sizeof number) == sizeof number) reported = number;
    close(ends[0]);

    // Whoever comes next, reader or writer, finds it sound.
    auto store = Store::open(file, round % 2 == 0 ? Access::read_write : Access::read_only);
    REQUIRE(store);
    CHECK(store->message().empty());
    const auto problems = store->verify();
    REQUIRE(problems);
    CHECK(problems->findings.empty());
    const auto configs = configs_in(*store);
    for (int i = 0; i <= reported; ++i) REQUIRE(configs.count(sample_trial(i).key.config) == 1);
    CHECK(std::ssize(configs) <= reported + 2);
  }
  CHECK(reported > rounds);
  CHECK(named(folder.path(), "cache.db.corrupt-").empty());
}

// Trials of writer number `who` until the time is over; their count goes through `report`.
std::string write_for(const fs::path& file, int who, Clock::time_point end, int report) {
  auto store = Store::open(file, Access::read_write);
  if (!store) return store.error().message;
  const auto run = store->begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "", "", "{}", ""});
  if (!run) return run.error().message;
  int count = 0;
  while (Clock::now() < end) {
    TrialRecord trial = sample_trial(who * 1'000'000 + count);
    trial.run = *run;
    if (const auto done = store->record(trial); !done) return done.error().message;
    ++count;
    if (const auto done = store->crown({trial}); !done) return done.error().message;
  }
  const auto ended = store->end_run(*run, {{"threads", count}});
  if (!ended) return ended.error().message;
  return write(report, &count, sizeof count) == sizeof count ? "" : "no report";
}

// Opens anew each time, as programs that start up do. What it saw once must not vanish.
std::string read_for(const fs::path& file, Clock::time_point end) {
  std::size_t seen = 0;
  while (Clock::now() < end) {
    auto store = Store::open(file, Access::read_only);
    if (!store) return store.error().message;
    if (!store->message().empty()) return store->message();
    const auto trials = store->trials(sample_trial(0).key.problem_key, kDevice);
    if (!trials) return trials.error().message;
    if (trials->size() < seen) return "rows vanished";
    seen = trials->size();
    const auto winner = store->winner(sample_trial(0).key.problem_key, kDevice);
    if (!winner) return winner.error().message;
    if (seen > 2 && !*winner) return "the winner vanished";
  }
  return seen > 0 ? "" : "nothing was ever there to read";
}

TEST_CASE("two writers and eight readers lose no row and see no error") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const std::string said = in_child([&] {
    const auto end = Clock::now() + std::chrono::seconds{test::whole_form() ? 60 : 4};
    std::vector<pid_t> children;
    for (int i = 0; i < 10; ++i) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      const std::string failure = i < 2 ? write_for(file, i, end, ends[1]) : read_for(file, end);
      if (!failure.empty())
        fmt::print(stderr, "{} {}: {}\n", i < 2 ? "writer" : "reader", i, failure);
      _exit(failure.empty() ? 0 : 1);
    }
    std::string failures;
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) failures += "a process failed; ";
    }
    return failures;
  });
  CHECK(said == "");
  close(ends[1]);
  std::size_t recorded = 0;
  int count = 0;
  int writers = 0;
  for (; read(ends[0], &count, sizeof count) == sizeof count; ++writers) recorded += count;
  close(ends[0]);
  CHECK(writers == 2);
  auto store = Store::open(file, Access::read_only);
  REQUIRE(store);
  CHECK(configs_in(*store).size() == recorded);
  CHECK(store->verify()->findings.empty());
}

TEST_CASE("a writer waits for another one's lock") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  auto store = Store::open(file, Access::read_write);
  REQUIRE(store);
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t holder = fork();
  REQUIRE(holder >= 0);
  if (holder == 0) {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    sqlite3_exec(db, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
    const bool told = write(ready[1], "x", 1) == 1;
    std::this_thread::sleep_for(std::chrono::milliseconds{700});
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
    _exit(told ? 0 : 1);
  }
  char token = 0;
  REQUIRE(read(ready[0], &token, 1) == 1);
  const auto start = Clock::now();
  TrialRecord trial = sample_trial(1);
  CHECK(store->record(trial));
  CHECK(Clock::now() - start > std::chrono::milliseconds{300});
  int status = 0;
  waitpid(holder, &status, 0);
  CHECK(status == 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace autotune::cache

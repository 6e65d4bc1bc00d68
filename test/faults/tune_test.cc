// The tuner itself killed at random moments, and a disk that is full.
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "test/faults/fault_vfs.h"
#include "test/faults/length.h"
#include "test/support/tuning.h"

namespace autotune::tune {
namespace {

using namespace test;

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string id;
  std::string name;
  std::string state;
  return (file >> id >> name >> state) && state != "Z" && state != "X";
}

// Tunes in a child process; kills it after `delay` where that is not zero. True when it finished.
bool tune_in_child(const std::filesystem::path& folder, std::chrono::microseconds delay) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = cache::Store::open(folder / "cache.db", cache::Access::read_write);
    if (!store) _exit(2);
    auto tuner = Tuner::create(h200(), 0, fake_options());
    Watcher watcher;
    const std::atomic<bool> never{false};
    const bool ok = tuner && tuner->tune(small_problem(), &*store, watcher, never);
    _exit(ok ? 0 : 1);
  }
  if (delay.count() > 0) {
    std::this_thread::sleep_for(delay);
    kill(child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string integrity(const std::filesystem::path& file) {
  sqlite3* db = nullptr;
  std::string answer = "cannot be opened";
  if (sqlite3_open(file.c_str(), &db) == SQLITE_OK) {
    sqlite3_exec(
        db, "PRAGMA integrity_check",
        [](void* to, int, char** values, char**) {
          *static_cast<std::string*>(to) = values[0];
          return 0;
        },
        &answer, nullptr);
  }
  sqlite3_close(db);
  return answer;
}

}  // namespace

TEST_CASE("a tuner killed at random moments loses at most the trial in flight and resumes") {
  std::mt19937 random(test::fault_seed("kill -9 of a tuner"));
  const int rounds = test::whole_form() ? 100 : 25;
  std::size_t resumed = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const TempFolder folder;
    FakeLog log;
    const auto delay = std::chrono::microseconds(1000 + random() % 120'000);
    const bool finished = tune_in_child(folder.path(), delay);
    for (const std::string& pid : log.lines("pid")) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (alive(std::stoi(pid)) && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK_FALSE(alive(std::stoi(pid)));  // no orphan
    }
    const std::vector<std::string> before = log.lines("measure");
    if (std::filesystem::exists(folder.path() / "cache.db")) {
      CHECK(integrity(folder.path() / "cache.db") == "ok");
    }
    log.clear();

    cache::Store store = open_store(folder);
    CHECK(store.message().empty());
    Watcher watcher;
    const TuneResult result = tuned(fake_options(), small_problem(), &store, watcher);
    CHECK(to_string(result.winner.config) == test::fastest(watcher.plans[0]));
    CHECK(result.reused <= static_cast<std::int64_t>(before.size()));
    // Two at most are in flight: one that is being written down while the next is measured.
    CHECK(result.reused + 2 >= static_cast<std::int64_t>(before.size()));
    CHECK(log.lines("measure").size() + static_cast<std::size_t>(result.reused) ==
          watcher.trials.size());
    if (!finished && result.reused > 0) ++resumed;
  }
  CHECK(resumed > 0);
}

// Tunes with a cache that takes no more rows. 0: there is a result, not crowned, and one warning.
int unkept_run(cache::Store& store) {
  auto tuner = Tuner::create(h200(), 0, fake_options());
  if (!tuner) return 2;
  Watcher watcher;
  const std::atomic<bool> never{false};
  const auto result = tuner->tune(small_problem(), &store, watcher, never);
  if (!result) return 3;
  if (result->winner.measurement.median_us <= 0 || result->crowned) return 4;
  return watcher.warnings.size() == 1 ? 0 : 5;
}

void check_survived(pid_t child, const TempFolder& folder) {
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(integrity(folder.path() / "cache.db") == "ok");
}

TEST_CASE("a full disk costs a warning, not the result") {
  const TempFolder folder;
  { cache::Store store = open_store(folder); }
  const pid_t child = fork();
  if (child == 0) {
    // Writes beyond this size fail, as on a full disk; the database exists already.
    signal(SIGXFSZ, SIG_IGN);
    cache::Store store = open_store(folder);
    const rlim_t size = std::filesystem::file_size(folder.path() / "cache.db") + 8192;
    const rlimit limit{size, size};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(unkept_run(store));
  }
  check_survived(child, folder);
}

TEST_CASE("a disk that fails in the middle of a run costs a warning, not the result") {
  const TempFolder folder;
  { cache::Store store = open_store(folder); }
  const pid_t child = fork();
  if (child == 0) {
    test::use_fault_vfs({});
    cache::Store store = open_store(folder);
    test::use_fault_vfs({test::Fault::write, 30, true});
    const int code = unkept_run(store);
    _exit(code == 0 && test::fault_steps() < 30 ? 6 : code);
  }
  check_survived(child, folder);
}

TEST_CASE("what was measured on other code is measured again") {
  const TempFolder folder;
  Watcher watcher;
  {
    cache::Store store = open_store(folder);
    CHECK(tuned(fake_options(), small_problem(), &store, watcher).reused == 0);
    CHECK(tuned(fake_options(), small_problem(), &store, watcher).reused > 0);
  }
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open((folder.path() / "cache.db").c_str(), &db) == SQLITE_OK);
  for (const char* sql : {"UPDATE trial SET source_hash = 'stale' || source_hash",
                          "UPDATE cubin SET source_hash = 'stale' || source_hash"}) {
    REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  }
  sqlite3_close(db);
  cache::Store store = open_store(folder);
  FakeLog log;
  const TuneResult again = tuned(fake_options(), small_problem(), &store, watcher);
  CHECK(again.reused == 0);
  CHECK(!log.lines("compile").empty());
  CHECK(log.lines("measure").size() == watcher.plans.back().survivors.size());
}

TEST_CASE(
    "a compiler that aborts, is killed or talks nonsense is a trial each, and the search goes on") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Watcher look;
  tuned(fake_options(), small_problem(), nullptr, look);
  const auto& survivors = look.plans[0].survivors;
  const KernelTraits traits = traits_of(small_problem());
  // The survivors' codes, the default's first, and how many configs are made of each.
  std::vector<std::string> codes;
  std::map<std::string, std::int64_t> configs;
  for (const search::Candidate& candidate : survivors) {
    std::string code;
    for (const auto& [name, value] :
         candidate.config.kernel->definitions(candidate.config, traits, h200())) {
      code += name + "=" + value + "\n";
    }
    if (++configs[code] == 1) codes.push_back(code);
  }
  REQUIRE(codes.size() > 3);
  const test::Setting rules("AUTOTUNE_FAKE_RULES",
                            codes[1] + "=>abort|" + codes[2] + "=>kill|" + codes[3] + "=>garbage");
  Watcher watcher;
  const TuneResult result = tuned(fake_options(), small_problem(), &store, watcher);
  CHECK(result.outcomes.at("compile_crashed") ==
        configs[codes[1]] + configs[codes[2]] + configs[codes[3]]);
  CHECK(result.outcomes.at("ok") > 0);
  const auto rows = store.trials(problem_key(small_problem()), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() == survivors.size());
  CHECK(std::count_if(rows->begin(), rows->end(), [](const cache::TrialRecord& row) {
          return row.outcome == Outcome::compile_crashed && !row.log.empty();
        }) == result.outcomes.at("compile_crashed"));
}

TEST_CASE("a run goes on in the fresh cache where another process emptied a damaged one") {
  struct Emptying : Watcher {
    std::filesystem::path file;
    void tried(const Trial& trial, const Progress& seen) override {
      Watcher::tried(trial, seen);
      if (trials.size() == 3) CHECK(truncate(file.c_str(), 0) == 0);
    }
  };
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Emptying watcher;
  watcher.file = folder / "cache.db";
  const TuneResult result = tuned(fake_options(), small_problem(), &store, watcher);
  CHECK(watcher.warnings.empty());
  CHECK(result.crowned);
  const auto rows = store.trials(problem_key(small_problem()), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() + 3 >= watcher.trials.size());
  CHECK(rows->size() < watcher.trials.size());
  const auto winner = store.winner(problem_key(small_problem()), fingerprint(h200()));
  REQUIRE(winner);
  REQUIRE(winner->has_value());
  CHECK((*winner)->trial.key.config == to_string(result.winner.config));
  CHECK(store.verify()->findings.empty());
}

TEST_CASE(
    "a measuring worker that faults, exits or is killed is a trial each, and the search goes on") {
  const TempFolder folder;
  cache::Store store = open_store(folder);
  Watcher look;
  tuned(fake_options(), small_problem(), nullptr, look);
  const auto& survivors = look.plans[0].survivors;
  REQUIRE(survivors.size() > 4);
  const test::Setting rules("AUTOTUNE_FAKE_RULES", to_string(survivors[1].config) + "=>kill|" +
                                                       to_string(survivors[2].config) + "=>exit|" +
                                                       to_string(survivors[3].config) + "=>fault");
  Watcher watcher;
  const TuneResult result = tuned(fake_options(), small_problem(), &store, watcher);
  CHECK(result.outcomes.at("faulted") == 3);
  CHECK(result.outcomes.at("ok") == static_cast<std::int64_t>(survivors.size()) - 3);
  const auto rows = store.trials(problem_key(small_problem()), fingerprint(h200()));
  REQUIRE(rows);
  CHECK(rows->size() == survivors.size());
}

}  // namespace autotune::tune

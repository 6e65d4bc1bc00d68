// Workers that really crash, hang, exceed their memory, or lose their parent.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "autotune/worker/pool.h"
#include "test/support/catch.h"

namespace autotune::worker {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMemoryLimit = std::int64_t{512} << 20;

WorkerOptions fake(milliseconds limit = milliseconds(30'000)) {
  return {AUTOTUNE_FAKE_WORKER, kMemoryLimit, limit};
}

CompileRequest request(std::uint64_t id, const std::string& source) {
  return {id, source, "entry", "sm_90a", {}};
}

CompileReply answer(CompilePool& pool) {
  auto replies = pool.poll(milliseconds(60'000));
  REQUIRE(replies);
  REQUIRE(replies->size() == 1);
  return replies->front();
}

// One worker answers a bad request with that outcome and the next request is answered well.
CompileReply after_fault(const std::string& source, milliseconds limit = milliseconds(30'000)) {
  auto pool = CompilePool::start(fake(limit), 1);
  REQUIRE(pool);
  pool->submit(request(1, source));
  const CompileReply bad = answer(*pool);
  CHECK(bad.id == 1);
  pool->submit(request(2, "plain"));
  const CompileReply good = answer(*pool);
  CHECK(good.id == 2);
  CHECK(good.outcome == Outcome::ok);
  return bad;
}

bool alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string id;
  std::string name;
  std::string state;
  return (file >> id >> name >> state) && state != "Z" && state != "X";
}

struct Log {
  Log() : path(std::filesystem::temp_directory_path() / ("fake_log_" + std::to_string(getpid()))) {
    std::filesystem::remove(path);
    setenv("AUTOTUNE_FAKE_LOG", path.c_str(), 1);
  }
  ~Log() {
    unsetenv("AUTOTUNE_FAKE_LOG");
    std::filesystem::remove(path);
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    std::ifstream file(path);
    std::string word;
    while (file >> word) {
      if (word == "pid" && file >> word) found.push_back(std::stoi(word));
    }
    return found;
  }
  std::filesystem::path path;
};

template <class Condition>
bool within(std::chrono::seconds limit, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

MeasureReply measured(MeasureWorker& worker, std::uint64_t id, const std::string& config) {
  MeasureRequest request;
  request.id = id;
  request.config = config;
  worker.submit(request);
  auto reply = worker.poll(milliseconds(60'000));
  REQUIRE(reply);
  REQUIRE(*reply);
  CHECK((*reply)->id == id);
  return **reply;
}

}  // namespace

TEST_CASE("large shared memory: a compiler process that dies is recorded and replaced") {
  const CompileReply reply = after_fault("@abort");
  CHECK(reply.outcome == Outcome::compile_crashed);
  CHECK(reply.log.find("signal 6") != std::string::npos);
  CHECK(reply.log.find("last words before the abort") != std::string::npos);
  CHECK(after_fault("@kill").log.find("signal 9") != std::string::npos);
  CHECK(after_fault("@exit").log.find("exited with code 7") != std::string::npos);
}

TEST_CASE("large shared memory: a compiler process that exceeds its memory limit is recorded") {
  const CompileReply reply = after_fault("@eat");
  CHECK(reply.outcome == Outcome::compile_crashed);
  CHECK(reply.log.find("limit 512 MiB") != std::string::npos);
  // Its end is not enough: without the limit the machine's whole memory would end it too.
  const std::string words = "peak memory ";
  const auto at = reply.log.find(words);
  if (at != std::string::npos) CHECK(std::stoi(reply.log.substr(at + words.size())) <= 600);
}

TEST_CASE("a compiler process that hangs is ended at its time limit") {
  const auto start = std::chrono::steady_clock::now();
  const CompileReply reply = after_fault("@hang", milliseconds(300));
  CHECK(reply.outcome == Outcome::timed_out);
  CHECK(reply.log.find("0.3 s") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(after_fault("@half", milliseconds(300)).outcome == Outcome::timed_out);
}

TEST_CASE("a compiler process that answers nonsense is replaced") {
  for (const char* word : {"@garbage", "@huge", "@wrong_id"}) {
    CHECK(after_fault(word).outcome == Outcome::compile_crashed);
  }
}

TEST_CASE("one crash among many requests costs only its own") {
  auto pool = CompilePool::start(fake(), 3);
  REQUIRE(pool);
  for (std::uint64_t id = 0; id < 12; ++id) pool->submit(request(id, id % 4 ? "plain" : "@abort"));
  int crashed = 0;
  int fine = 0;
  while (pool->pending() > 0) {
    const auto replies = pool->poll(milliseconds(60'000));
    REQUIRE(replies);
    for (const CompileReply& reply : *replies) {
      const bool bad = reply.id % 4 == 0;
      CHECK(reply.outcome == (bad ? Outcome::compile_crashed : Outcome::ok));
      ++(bad ? crashed : fine);
    }
  }
  CHECK(crashed == 3);
  CHECK(fine == 9);
}

TEST_CASE("a compiler process killed while idle is replaced unseen") {
  const Log log;
  auto pool = CompilePool::start(fake(), 1);
  REQUIRE(pool);
  REQUIRE(pool->compiler());
  const auto pids = log.pids();
  REQUIRE(pids.size() == 1);
  kill(pids[0], SIGKILL);
  REQUIRE(within(std::chrono::seconds(10), [&] { return !alive(pids[0]); }));
  pool->submit(request(1, "plain"));
  CHECK(answer(*pool).outcome == Outcome::ok);
  // And one that has answered before.
  const pid_t second = log.pids().at(1);
  kill(second, SIGKILL);
  REQUIRE(within(std::chrono::seconds(10), [&] { return !alive(second); }));
  pool->submit(request(2, "plain"));
  CHECK(answer(*pool).outcome == Outcome::ok);
}

TEST_CASE("a measuring worker that dies, hangs or faults leaves the next config unaffected") {
  auto worker = MeasureWorker::start(fake(milliseconds(2'000)), 0);
  REQUIRE(worker);
  std::uint64_t id = 0;
  for (const auto& [word, outcome] :
       std::vector<std::pair<std::string, Outcome>>{{"@kill", Outcome::faulted},
                                                    {"@exit", Outcome::faulted},
                                                    {"@abort", Outcome::faulted},
                                                    {"@garbage", Outcome::faulted},
                                                    {"@fault", Outcome::faulted},
                                                    {"@wrong_id", Outcome::faulted},
                                                    {"@hang", Outcome::timed_out}}) {
    INFO(word);
    CHECK(measured(*worker, ++id, "mma:" + word).outcome == outcome);
    CHECK(measured(*worker, ++id, "mma:block_m=128").outcome == Outcome::ok);
  }
  CompareRequest compare;
  compare.contenders = {{"mma:block_m=128", "", ""}, {"mma:@kill", "", ""}};
  const auto lost = worker->compare(compare);
  REQUIRE(lost);
  CHECK(lost->outcome == Outcome::faulted);
  CHECK(measured(*worker, ++id, "mma:block_m=128").outcome == Outcome::ok);
}

TEST_CASE("a measuring worker killed while idle is replaced unseen") {
  const Log log;
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  REQUIRE(worker->driver());
  const pid_t pid = log.pids().at(0);
  kill(pid, SIGKILL);
  REQUIRE(within(std::chrono::seconds(10), [&] { return !alive(pid); }));
  CHECK(measured(*worker, 1, "mma:block_m=128").outcome == Outcome::ok);
}

TEST_CASE("a request that a worker left unread goes to its successor") {
  const Log log;
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  REQUIRE(worker->driver());
  const pid_t pid = log.pids().at(0);
  kill(pid, SIGSTOP);
  MeasureRequest request;
  request.id = 1;
  request.config = "mma:block_m=128";
  worker->submit(request);
  const auto none = worker->poll(milliseconds(50));
  REQUIRE(none);
  REQUIRE_FALSE(*none);
  kill(pid, SIGKILL);
  const auto reply = worker->poll(milliseconds(20'000));
  REQUIRE(reply);
  REQUIRE(*reply);
  CHECK((*reply)->outcome == Outcome::ok);
}

TEST_CASE("no worker outlives a parent that was killed with SIGKILL") {
  const Log log;
  const pid_t parent = fork();
  if (parent == 0) {
    // Busy and idle compile workers, and a measuring worker inside a kernel that never ends.
    auto pool = CompilePool::start(fake(), 2);
    auto worker = MeasureWorker::start(fake(), 0);
    if (!pool || !worker || !worker->driver()) _exit(1);
    MeasureRequest hang;
    hang.config = "mma:@hang";
    worker->submit(hang);
    pool->submit(request(1, "@hang"));
    pool->submit(request(2, "@slow"));
    (void)worker->poll(milliseconds(50));
    (void)pool->poll(milliseconds(60'000));
    while (true) pause();
  }
  const bool started = within(std::chrono::seconds(30), [&] { return log.pids().size() == 3; });
  const auto pids = log.pids();
  std::this_thread::sleep_for(milliseconds(200));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  REQUIRE(started);
  for (const pid_t pid : pids) {
    CHECK(within(std::chrono::seconds(10), [&] { return !alive(pid); }));
  }
}

TEST_CASE("workers end with their owner") {
  const Log log;
  {
    auto pool = CompilePool::start(fake(), 2);
    REQUIRE(pool);
    pool->submit(request(1, "@hang"));
    pool->submit(request(2, "@hang"));
    REQUIRE(pool->poll(milliseconds(20)));
    REQUIRE(within(std::chrono::seconds(30), [&] { return log.pids().size() == 2; }));
  }
  for (const pid_t pid : log.pids()) CHECK_FALSE(alive(pid));
}

}  // namespace autotune::worker

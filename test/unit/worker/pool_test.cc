#include "autotune/worker/pool.h"

#include <stdlib.h>

#include <set>

#include "test/support/catch.h"

namespace autotune::worker {
namespace {

using std::chrono::milliseconds;

WorkerOptions fake() { return {AUTOTUNE_FAKE_WORKER, 0, milliseconds(20'000)}; }

CompileRequest request(std::uint64_t id, const std::string& source = "plain") {
  return {id, source, "entry", "sm_90a", {{"THREADS", "128"}}};
}

MeasureRequest measuring(std::uint64_t id, const std::string& config) {
  MeasureRequest request;
  request.id = id;
  request.config = config;
  return request;
}

struct Greeting {
  explicit Greeting(const char* word) { setenv("AUTOTUNE_FAKE_HELLO", word, 1); }
  ~Greeting() { unsetenv("AUTOTUNE_FAKE_HELLO"); }
};

}  // namespace

TEST_CASE("every request to a pool is answered once") {
  auto pool = CompilePool::start(fake(), 3);
  REQUIRE(pool);
  CHECK(pool->jobs() == 3);
  for (std::uint64_t id = 0; id < 20; ++id) pool->submit(request(id));
  CHECK(pool->pending() == 20);
  std::set<std::uint64_t> seen;
  while (pool->pending() > 0) {
    const auto replies = pool->poll(milliseconds(20'000));
    REQUIRE(replies);
    REQUIRE_FALSE(replies->empty());
    for (const CompileReply& reply : *replies) {
      CHECK(reply.outcome == Outcome::ok);
      CHECK(reply.actual.max_threads == 128);
      CHECK(seen.insert(reply.id).second);
    }
  }
  CHECK(seen.size() == 20);
  CHECK(pool->compiler() == std::string("nvrtc 99.0"));
}

TEST_CASE("polling an idle pool gives nothing at once") {
  auto pool = CompilePool::start(fake(), 1);
  REQUIRE(pool);
  const auto begun = std::chrono::steady_clock::now();
  const auto replies = pool->poll(milliseconds(60'000));
  REQUIRE(replies);
  CHECK(replies->empty());
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
}

TEST_CASE("polling returns after its timeout while a worker is at work") {
  auto pool = CompilePool::start(fake(), 1);
  REQUIRE(pool);
  pool->submit(request(1, "@hang"));
  const auto replies = pool->poll(milliseconds(50));
  REQUIRE(replies);
  CHECK(replies->empty());
  CHECK(pool->pending() == 1);
}

TEST_CASE("a cancelled pool goes on with new requests") {
  auto pool = CompilePool::start(fake(), 2);
  REQUIRE(pool);
  REQUIRE(pool->compiler());
  for (std::uint64_t id = 0; id < 6; ++id) pool->submit(request(id, "@hang"));
  pool->cancel();
  CHECK(pool->pending() == 0);
  pool->submit(request(77));
  const auto replies = pool->poll(milliseconds(20'000));
  REQUIRE(replies);
  REQUIRE(replies->size() == 1);
  CHECK(replies->front().id == 77);
}

TEST_CASE("without a compiler the pool says what the worker said") {
  const Greeting greeting("no_compiler");
  auto pool = CompilePool::start(fake(), 2);
  REQUIRE(pool);
  pool->submit(request(1));
  const auto replies = pool->poll(milliseconds(20'000));
  REQUIRE_FALSE(replies);
  CHECK(replies.error().code == ErrorCode::no_compiler);
  CHECK(replies.error().message == "libnvrtc is not here; install it");
  CHECK(pool->compiler().error().code == ErrorCode::no_compiler);
}

TEST_CASE("workers that never get ready are an error, not a loop") {
  for (const char* word : {"die", "then_die"}) {
    const Greeting greeting(word);
    auto pool = CompilePool::start(fake(), 2);
    REQUIRE(pool);
    for (std::uint64_t id = 0; id < 4; ++id) pool->submit(request(id));
    bool refused = false;
    while (!refused && pool->pending() > 0) {
      const auto replies = pool->poll(milliseconds(20'000));
      refused = !replies;
      if (refused) CHECK(replies.error().code == ErrorCode::failed);
    }
    CHECK((refused || std::string(word) == "then_die"));
  }
}

TEST_CASE("an executable that is not there is said so") {
  WorkerOptions options = fake();
  options.executable = "/nonexistent/autotune";
  auto pool = CompilePool::start(options, 1);
  REQUIRE(pool);
  const auto compiler = pool->compiler();
  REQUIRE_FALSE(compiler);
  CHECK(compiler.error().message.find("/nonexistent/autotune") != std::string::npos);
  CHECK_FALSE(MeasureWorker::start(options, 0));
}

TEST_CASE("a measuring worker answers measurements and comparisons") {
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  CHECK(worker->driver() == std::string("99.0"));
  worker->submit(measuring(4, "mma:block_m=128"));
  const auto reply = worker->poll(milliseconds(20'000));
  REQUIRE(reply);
  REQUIRE(*reply);
  CHECK((*reply)->id == 4);
  CHECK((*reply)->measurement.median_us == Approx(50));

  CompareRequest compare;
  compare.id = 5;
  compare.contenders = {{"mma:block_m=128", "", ""}};
  compare.baseline = true;
  const auto compared = worker->compare(compare);
  REQUIRE(compared);
  REQUIRE(compared->sides.size() == 2);
  CHECK(compared->sides[1].ratio == Approx(2));
  CHECK(compared->baseline == "cublasLt #3");
}

TEST_CASE("without a GPU the measuring worker says what it found") {
  const Greeting greeting("no_gpu");
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  CHECK(worker->driver().error().code == ErrorCode::no_gpu);
  worker->submit(measuring(1, "mma:block_m=128"));
  CHECK(worker->poll(milliseconds(20'000)).error().message == "GPU 0 is not here");
}

TEST_CASE("a forgotten measurement does not disturb the next") {
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  REQUIRE(worker->driver());
  worker->submit(measuring(1, "mma:@hang"));
  REQUIRE(worker->poll(milliseconds(20)));
  worker->cancel();
  worker->submit(measuring(2, "mma:block_m=128"));
  const auto reply = worker->poll(milliseconds(20'000));
  REQUIRE(reply);
  REQUIRE(*reply);
  CHECK((*reply)->id == 2);
  CHECK((*reply)->outcome == Outcome::ok);
}

TEST_CASE("a worker lost while its first request is sent leaves its version known") {
  auto worker = MeasureWorker::start(fake(), 0);
  REQUIRE(worker);
  worker->submit(measuring(1, "mma:@kill"));
  CHECK(worker->driver() == "99.0");
  const auto reply = worker->poll(milliseconds(20'000));
  REQUIRE(reply);
  REQUIRE(*reply);
  CHECK((*reply)->outcome == Outcome::faulted);
  worker->submit(measuring(2, "mma:block_m=128"));
  const auto next = worker->poll(milliseconds(20'000));
  REQUIRE(next);
  REQUIRE(*next);
  CHECK((*next)->outcome == Outcome::ok);
  CHECK(worker->driver() == "99.0");
}

TEST_CASE("an executable of workers that is given goes before the environment's") {
  CHECK(find_executable(AUTOTUNE_FAKE_WORKER) == std::filesystem::path(AUTOTUNE_FAKE_WORKER));
  const auto folder = find_executable("/tmp");
  REQUIRE_FALSE(folder);
  CHECK(folder.error().code == ErrorCode::bad_input);
  setenv("AUTOTUNE_WORKER", AUTOTUNE_FAKE_WORKER, 1);
  CHECK(find_executable("") == std::filesystem::path(AUTOTUNE_FAKE_WORKER));
  setenv("AUTOTUNE_WORKER", "/nonexistent/autotune", 1);
  CHECK_FALSE(find_executable(""));
  CHECK(find_executable(AUTOTUNE_FAKE_WORKER) == std::filesystem::path(AUTOTUNE_FAKE_WORKER));
  unsetenv("AUTOTUNE_WORKER");
}

}  // namespace autotune::worker

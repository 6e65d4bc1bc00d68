// A session: its memory, its sources, its refusals, many threads, and a fork.
#include "autotune/session.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "autotune/lookup/libraries.h"
#include "autotune/lookup/memory.h"
#include "autotune/worker/sanitizers.h"
#include "test/unit/lookup/setting.h"

using namespace autotune;
using test::Setting;

namespace {

Session open(const SessionOptions& options) {
  auto session = Session::open(options);
  if (!session) FAIL(session.error().message);
  return *std::move(session);
}

BestConfig ask(const Session& session, const Problem& problem) {
  auto best = session.best_config(problem);
  if (!best) FAIL(best.error().message);
  return *std::move(best);
}

bool same(const BestConfig& a, const BestConfig& b) {
  return a.problem == b.problem && a.device == b.device && a.config == b.config &&
         a.match == b.match && a.from_problem == b.from_problem && a.median_us == b.median_us;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A fork while another thread allocates, or ends, may leave AddressSanitizer's own heap locked in
// the child: its runtimes of GCC 12 and of LLVM before 18 do not stand still
// (llvm/llvm-project#75290).
constexpr bool kForksBesideThreads = !worker::kAddressSanitizer;

int open_descriptors_of(const std::filesystem::path& file) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) == file) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a session answers as best_config does") {
  const Setting setting;
  setting.fill();
  const Session session = open(setting.options());
  CHECK(session.device() == "NVIDIA H200");
  CHECK(session.message().empty());
  BestOptions options;
  options.cache = setting.file;
  options.device = "nvidia-h200";
  for (const std::int64_t size : {4096, 4000, 64}) {
    const Problem problem = Setting::square(size);
    CHECK(same(ask(session, problem), *best_config(problem, options)));
  }
  CHECK(ask(session, setting.problem).match == Match::exact);
  Problem wrong;
  wrong.m = 0;
  CHECK(session.best_config(wrong).error().code == ErrorCode::bad_input);
}

TEST_CASE("an answer stays the same while the session lives; another session sees the change") {
  const Setting setting;
  setting.crown(setting.problem, setting.config, 210);
  const Session session = open(setting.options());
  const BestConfig first = ask(session, setting.problem);
  setting.crown(setting.problem, setting.config, 190);
  CHECK(same(ask(session, setting.problem), first));
  CHECK(ask(open(setting.options()), setting.problem).median_us == Approx(190));
}

TEST_CASE("a problem with its defaults filled in is the same problem") {
  const Setting setting;
  setting.fill();
  const Session session = open(setting.options());
  Problem bare;
  bare.m = bare.n = bare.k = 4096;
  const BestConfig best = ask(session, bare);
  CHECK(best.problem.lda == 4096);
  CHECK(same(best, ask(session, setting.problem)));
}

TEST_CASE("the memory keeps what came first, and is bounded") {
  lookup::Memory memory;
  BestConfig best;
  for (std::int64_t m = 1; m <= 70'000; ++m) {
    best.problem.m = m;
    memory.keep(best.problem, best);
  }
  Problem first;
  first.m = 1;
  CHECK_FALSE(memory.find(first).has_value());
  CHECK(memory.find(best.problem).has_value());
  BestConfig other = best;
  other.config = "late";
  CHECK(memory.keep(best.problem, other)->config.empty());
}

TEST_CASE("stored code goes to the driver; without it, compiling is allowed or refused in words") {
  const Setting setting;
  setting.crown(setting.problem, setting.config, 210);
  SessionOptions options = setting.options();
  const auto compiled = open(options).kernel(setting.problem);
  REQUIRE_FALSE(compiled.has_value());
  CHECK(compiled.error().code == ErrorCode::no_compiler);
  CHECK(contains(compiled.error().message, "NVRTC"));

  options.allow_compile = false;
  const auto refused = open(options).kernel(setting.problem);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::no_compiler);
  CHECK(contains(refused.error().message, "may not compile"));
  CHECK(contains(refused.error().message, setting.file.string()));

  setting.fill();
  // No context is current here, whether or not there is a GPU.
  const auto found = open(options).kernel(setting.problem);
  REQUIRE_FALSE(found.has_value());
  CHECK(found.error().code == ErrorCode::no_gpu);
}

TEST_CASE("an MLP's kernel needs the code of both stages") {
  const Setting setting(Setting::mlp());
  setting.crown(setting.problem, setting.config, 210);
  const auto put = [&](std::size_t stage) {
    auto store = cache::Store::open(setting.file, cache::Access::read_write);
    REQUIRE(store.has_value());
    REQUIRE(store->put_cubin(setting.code_key(stage), {"ELF of the test", {}}).has_value());
  };
  SessionOptions options = setting.options();
  options.allow_compile = false;
  put(0);
  {
    const auto session = Session::open(options);
    REQUIRE(session.has_value());
    CHECK(session->best_config(setting.problem)->match == Match::exact);
    const auto half = session->kernel(setting.problem);
    REQUIRE_FALSE(half.has_value());
    CHECK(half.error().code == ErrorCode::no_compiler);
    CHECK(half.error().message.find(to_string(stage_of(setting.config, 1))) == 0);
  }
  put(1);
  const auto session = Session::open(options);
  REQUIRE(session.has_value());
  CHECK(session->kernel(setting.problem).error().code == ErrorCode::no_gpu);
}

TEST_CASE("a cache that cannot be read, or is not wanted, is left out") {
  const Setting setting(Setting::unheard_of());
  SessionOptions options = setting.options();
  options.cache = setting.folder.path();
  const Session session = open(options);
  CHECK(contains(session.message(), setting.folder.path().string()));
  CHECK(ask(session, setting.problem).match == Match::default_config);

  setting.fill();
  options = setting.options();
  options.use_cache = false;
  CHECK(ask(open(options), setting.problem).match == Match::default_config);
  options.device = "voodoo-3";
  CHECK(Session::open(options).error().code == ErrorCode::bad_input);
}

TEST_CASE("a bundle serves without cache, compiler and home") {
  const Setting setting;
  SessionOptions options;
  options.device = "nvidia-h200";
  options.bundle = setting.make_bundle();
  options.allow_compile = false;
  const std::string said = cache::testing::in_child([&] {
    for (const char* name : {"HOME", "XDG_CACHE_HOME", "AUTOTUNE_CACHE"}) unsetenv(name);
    options.use_cache = false;
    const auto session = Session::open(options);
    if (!session) return session.error().message;
    const auto best = session->best_config(setting.problem);
    if (!best || best->match != Match::exact || best->median_us != 205) return std::string("match");
    const auto kernel = session->kernel(setting.problem);
    if (kernel || kernel.error().code != ErrorCode::no_gpu) return std::string("kernel");
    const auto near = session->best_config(Setting::square(4000));
    if (!near || near->match != Match::nearest_problem) return std::string("near");
    return std::string();
  });
  CHECK(said == "");

  // What the user tuned comes before what was deployed.
  setting.crown(setting.problem, setting.config, 190);
  options.cache = setting.file;
  CHECK(ask(open(options), setting.problem).median_us == Approx(190));
}

TEST_CASE("between the rungs of a ladder a session answers from them, and remembers it") {
  const Setting setting;
  Problem rung = setting.problem;
  for (const std::int64_t m : {64, 96, 128}) {
    rung.m = m;
    setting.crown(rung, Setting::default_config(rung, setting.device), 20);
  }
  const Session session = open(setting.options());
  for (const std::int64_t m : {65, 80, 100, 127}) {
    Problem between = rung;
    between.m = m;
    const BestConfig first = ask(session, between);
    INFO(m << ": " << first.config << " of " << first.from_problem);
    CHECK(first.match == Match::nearest_problem);
    CHECK(contains(first.from_problem, "x4096x4096 bf16 tn"));
    const auto config = parse_config(first.config, *find_family("gemm"));
    REQUIRE(config.has_value());
    CHECK_FALSE(search::check(*config, between, traits_of(between), setting.device, {}, nullptr)
                    .has_value());
    // What is tuned meanwhile changes nothing for this session: the answer is in its memory.
    setting.crown(between, setting.config, 1);
    CHECK(same(ask(session, between), first));
  }
}

TEST_CASE(
    "where code is not to be compiled, what was tuned nearby comes before the model's choice") {
  const Setting setting;
  // Large tiles leave most of the GPU idle on the problem that is asked about.
  const Problem tuned = Setting::unheard_of(2048, 2048);
  setting.crown(tuned, Setting::default_config(tuned, setting.device), 30);
  const Problem asked = Setting::unheard_of(512, 2048);
  SessionOptions options = setting.options();
  CHECK(ask(open(options), asked).match == Match::default_config);
  options.allow_compile = false;
  CHECK(ask(open(options), asked).match == Match::nearest_problem);
  options.allow_compile = true;
  options.bundle = setting.make_bundle();
  CHECK(ask(open(options), asked).match == Match::nearest_problem);
}

TEST_CASE("what may not compile answers with what a bundle has the code of") {
  const auto rows = [](std::int64_t m) {
    Problem problem;
    problem.m = m;
    problem.n = problem.k = 4096;
    return *checked(problem);
  };
  const Setting setting(rows(192));
  SessionOptions options = setting.options();
  options.bundle = setting.make_bundle();
  // Of 160 a winner came with the library, its code did not.
  REQUIRE(ask(open(options), rows(160)).match == Match::exact);
  options.allow_compile = false;
  for (const std::int64_t m : {160, 129, 191, 250}) {
    INFO(m);
    const Session session = open(options);
    const BestConfig best = ask(session, rows(m));
    CHECK(best.match == Match::nearest_problem);
    CHECK(best.config == to_string(setting.config));
    CHECK(session.kernel(rows(m)).error().code == ErrorCode::no_gpu);
  }
  options.use_cache = false;
  options.bundle.clear();
  CHECK(ask(open(options), rows(160)).match == Match::exact);
}

TEST_CASE("code that is kept where no cache was is found") {
  const Setting setting;
  const std::filesystem::path file = setting.folder / "new" / "cache.db";
  const auto libraries = lookup::Libraries::open(file, {});
  REQUIRE(libraries.has_value());
  const auto found = [&] {
    return (*libraries)->code(setting.config, setting.problem, setting.device).has_value();
  };
  CHECK_FALSE(found());
  (*libraries)->keep({setting.code_key(0), {"ELF of the test", {}}});
  CHECK(found());

  // So are winners, also for who asked before.
  const auto known = [&] { return (*libraries)->stored(setting.problem, setting.device); };
  const auto late = lookup::Libraries::open(setting.file, {});
  REQUIRE(late.has_value());
  CHECK_FALSE(lookup::is_stored((*late)->stored(setting.problem, setting.device)));
  setting.crown(setting.problem, setting.config, 210);
  CHECK_FALSE(lookup::is_stored((*late)->stored(setting.problem, setting.device)));
  (*late)->keep({setting.code_key(0), {"ELF of the test", {}}});
  CHECK((*late)->stored(setting.problem, setting.device).exact.has_value());
  CHECK_FALSE(lookup::is_stored(known()));
}

TEST_CASE("a damaged cache is left as it is") {
  const Setting setting;
  setting.fill();
  std::filesystem::resize_file(setting.file, std::filesystem::file_size(setting.file) / 2);
  const auto size = std::filesystem::file_size(setting.file);
  const auto libraries = lookup::Libraries::open(setting.file, {});
  REQUIRE(libraries.has_value());
  CHECK(contains((*libraries)->message(), "going on without it"));
  (*libraries)->keep({setting.code_key(0), {"ELF of the test", {}}});
  CHECK(std::filesystem::file_size(setting.file) == size);
  const std::filesystem::directory_iterator files(setting.folder.path());
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a bundle for another architecture, a damaged one and a missing one are refused") {
  const Setting setting;
  SessionOptions options = setting.options();
  options.bundle = setting.make_bundle();
  options.device = "nvidia-gh200-480gb";
  CHECK(ask(open(options), setting.problem).match == Match::other_device);
  options.device = "nvidia-b200";
  const auto other = Session::open(options);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == ErrorCode::bad_input);
  CHECK(contains(other.error().message, "NVIDIA H200 (sm_90a)"));
  CHECK(contains(other.error().message, "--device nvidia-b200"));

  std::filesystem::resize_file(options.bundle, 1000);
  CHECK(Session::open(options).error().code == ErrorCode::corrupt_file);
  options.bundle = setting.file;
  CHECK(Session::open(options).error().code == ErrorCode::io_failed);
}

TEST_CASE("many threads get the same answers") {
  const Setting setting;
  setting.fill();
  SessionOptions options = setting.options();
  options.allow_compile = false;
  const Session session = open(options);
  constexpr int kThreads = 8;
  constexpr std::int64_t kProblems = 40;
  std::vector<std::vector<BestConfig>> answers(kThreads);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 2 * kProblems; ++i) {
        // Near the winner: looking these up does not enumerate the space.
        const auto best = session.best_config(Setting::square(4096 - 8 * (i % kProblems)));
        if (!best) ++wrong;
        if (best && i < kProblems) answers[t].push_back(*best);
        if (session.kernel(setting.problem).error().code != ErrorCode::no_gpu) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (int t = 1; t < kThreads; ++t) {
    REQUIRE(answers[t].size() == answers[0].size());
    for (std::size_t i = 0; i < answers[t].size(); ++i) {
      CHECK(same(answers[t][i], answers[0][i]));
    }
  }
}

TEST_CASE("a child after fork keeps the answers and opens the cache anew") {
  const Setting setting;
  setting.crown(setting.problem, setting.config, 210);
  const Session session = open(setting.options());
  REQUIRE(ask(session, setting.problem).match == Match::exact);
  REQUIRE(open_descriptors_of(setting.file) == 1);

  // Another thread is at the session whenever the process forks.
  std::atomic<bool> stop{false};
  std::thread busy;
  if (kForksBesideThreads) {
    busy = std::thread([&] {
      for (std::int64_t i = 0; !stop; ++i) {
        static_cast<void>(session.best_config(Setting::square(4096 - 8 * (i % 200 + 1))));
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    const std::string said = cache::testing::in_child([&] {
      alarm(20);  // a child that waits for a lock of its parent fails
      if (open_descriptors_of(setting.file) != 1) return std::string("opened before it was needed");
      const auto known = session.best_config(setting.problem);
      if (!known || known->median_us != 210) return std::string("forgot");
      if (open_descriptors_of(setting.file) != 1) return std::string("opened for what it knew");
      setting.crown(Setting::square(2000), setting.config, 77);
      const auto fresh = session.best_config(Setting::square(2000));
      if (!fresh || fresh->match != Match::exact) return std::string("no own connection");
      if (const int count = open_descriptors_of(setting.file); count != 2) {
        return "descriptors: " + std::to_string(count);
      }
      return std::string();
    });
    CHECK(said == "");
  }
  stop = true;
  if (busy.joinable()) busy.join();
  // The parent's connection is as it was.
  CHECK(ask(session, Setting::square(2000)).median_us == Approx(77));
}

TEST_CASE("a session that a child ends leaves the parent's alone") {
  const Setting setting;
  setting.fill();
  auto session = std::make_unique<Session>(open(setting.options()));
  const std::string said = cache::testing::in_child([&] {
    session.reset();
    return std::string(open_descriptors_of(setting.file) == 1 ? "" : "closed");
  });
  CHECK(said == "");
  CHECK(ask(*session, setting.problem).match == Match::exact);
}

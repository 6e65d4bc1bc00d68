// The program as its user meets it when disk, folder, cache or driver refuse: the result is still
// printed where there can be one, and one sentence says what is wrong.
#include <sys/mount.h>

#include <algorithm>
#include <fstream>

#include "test/support/shell.h"
#include "test/unit/cache/fixture.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;
using cache::testing::TempFolder;
using test::contains;
using test::Ran;
using test::shell;

constexpr const char* kTune =
    "tune gemm --m 256 --n 256 --k 256 --dtype fp32 --exact-fp32 --trials 4 --jobs 1";
constexpr const char* kPlan = "plan gemm --m 256 --n 256 --k 256 --device nvidia-h200";
constexpr const char* kBest = "best gemm --m 256 --n 256 --k 256 --device nvidia-h200";

// A machine with one H200, as far as the program can see.
const std::string kFakeGpu = "LD_LIBRARY_PATH=" AUTOTUNE_FAKE_CUDA " ";
const std::string kFakeWorker = "AUTOTUNE_WORKER=" AUTOTUNE_FAKE_WORKER " ";

Ran tune(const std::string& cache, const std::string& before = "") {
  return shell(kTune + std::string(" --cache ") + cache, before + kFakeGpu + kFakeWorker);
}

void check_result(const Ran& ran) {
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "winner"));
  CHECK(contains(ran.out, "simt:"));
}

void check_warned(const Ran& ran, const std::string& part) {
  INFO(ran.err);
  check_result(ran);
  CHECK(contains(ran.err, "warning"));
  CHECK(contains(ran.err, part));
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>{in}, {}};
}

std::int64_t winners_in(const fs::path& file) {
  auto store = cache::Store::open(file, cache::Access::read_only);
  REQUIRE(store);
  const auto problems = store->verify();
  REQUIRE(problems);
  CHECK(problems->findings.empty());
  return problems->winners;
}

TEST_CASE("tuning into a folder that is not there makes it, for its user alone") {
  const TempFolder folder;
  const Ran ran = tune(folder / "a/b/cache.db");
  check_result(ran);
  CHECK(winners_in(folder / "a/b/cache.db") == 1);
  CHECK(cache::testing::mode_of(folder / "a/b") == 0700);
  CHECK(cache::testing::mode_of(folder / "a/b/cache.db") == 0600);
}

TEST_CASE("a file system without room costs a warning, not the result") {
  const TempFolder folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=200k,mode=0700") != 0) {
    fmt::print("SKIPPED: a full file system: no permission to mount a small tmpfs here\n");
    return;
  }
  { REQUIRE(cache::Store::open(folder / "cache.db", cache::Access::read_write)); }
  {
    std::ofstream filler(folder / "filler", std::ios::binary);
    while (filler.write("filler", 6).flush()) {
    }
  }
  const Ran ran = tune(folder / "cache.db");
  fs::remove(folder / "filler");
  check_warned(ran, "cannot be written");
  CHECK(winners_in(folder / "cache.db") == 0);
  check_result(tune(folder / "cache.db"));
  CHECK(winners_in(folder / "cache.db") == 1);
  CHECK(umount(folder.path().c_str()) == 0);
}

TEST_CASE("a file that may not grow costs a warning, not the result") {
  const TempFolder folder;
  { REQUIRE(cache::Store::open(folder / "cache.db", cache::Access::read_write)); }
  // Less than it has: a few small trials would find room in its pages.
  const auto blocks = fs::file_size(folder / "cache.db") / 512 / 4;
  const Ran ran = tune(folder / "cache.db", fmt::format("trap '' XFSZ; ulimit -f {};", blocks));
  check_warned(ran, "cannot be written");
  CHECK(winners_in(folder / "cache.db") == 0);
}

TEST_CASE("a sweep that cannot go on leaves what was measured before") {
  const TempFolder folder;
  const auto sweep = [&](const std::string& trials, const std::string& before) {
    return shell("sweep gemm --m 256 --n 256 --k 256 --dtype fp32 --exact-fp32 --jobs 1 --cache " +
                     (folder / "cache.db").string() + " -o " + (folder / "data").string() +
                     " --trials " + trials,
                 before + kFakeGpu + kFakeWorker);
  };
  const Ran first = sweep("40", "");
  INFO(first.err);
  REQUIRE(first.code == 0);
  const fs::path file = folder / "data/gemm_256x256x256_fp32_tn_exact_fp32.sweep";
  const std::string measured = bytes_of(file);
  CHECK(measured.size() > 1024);
  const Ran second = sweep("60", "trap '' XFSZ; ulimit -f 1;");
  INFO(second.err);
  CHECK(second.code == 1);
  CHECK(contains(second.err, "cannot write"));
  CHECK(bytes_of(file) == measured);
  CHECK(sweep("60", "").code == 0);
  CHECK(bytes_of(file).size() > measured.size());
}

// Runs in a child that is no root. What is wrong, empty if nothing.
template <class Work>
void as_ordinary_user(const Work& work, uid_t user = cache::testing::kNobody) {
  const std::string said = cache::testing::in_child([&]() -> std::string {
    if (!cache::testing::become_ordinary_user(user)) return "cannot become an ordinary user";
    if (access(AUTOTUNE_BINARY, X_OK) != 0 || access(AUTOTUNE_FAKE_WORKER, X_OK) != 0) {
      return "SKIPPED";
    }
    const TempFolder folder;
    return work(folder);
  });
  if (said == "SKIPPED") {
    fmt::print("SKIPPED: as an ordinary user: the build folder is closed to others\n");
  } else {
    CHECK(said == "");
  }
}

TEST_CASE("a read-only folder costs a warning, not the result") {
  as_ordinary_user([](const TempFolder& folder) -> std::string {
    fs::create_directory(folder / "closed");
    { auto made = cache::Store::open(folder / "closed/cache.db", cache::Access::read_write); }
    ::chmod((folder / "closed").c_str(), 0500);
    const Ran ran = tune(folder / "closed/cache.db");
    const Ran best =
        shell(kBest + std::string(" --cache ") + (folder / "closed/cache.db").string());
    if (ran.code != 0 || !contains(ran.out, "winner")) return "no result: " + ran.err;
    if (!contains(ran.err, "cannot be written")) return "no warning: " + ran.err;
    return best.code == 0 && best.err.empty() ? "" : "best: " + best.err;
  });
}

TEST_CASE("without a home, a HOME or a cache folder there is still an answer") {
  const auto answers = []() -> std::string {
    const std::string none = "env -u HOME -u XDG_CACHE_HOME -u AUTOTUNE_CACHE ";
    const Ran ran = shell(kTune, none + kFakeGpu + kFakeWorker);
    if (ran.code != 0 || !contains(ran.out, "winner")) return "no result: " + ran.err;
    if (!contains(ran.err, "warning")) return "no warning: " + ran.err;
    const Ran best = shell(kBest, none);
    return best.code == 0 && contains(best.out, "config") ? "" : "best: " + best.err;
  };
  as_ordinary_user([&](const TempFolder&) { return answers(); });
  if (geteuid() != 0) return;
  // An account that the system does not know, as in containers: it has no home at all.
  as_ordinary_user([&](const TempFolder&) { return answers(); }, 54321);
}

TEST_CASE("a damaged cache is moved aside with a message, and the result is kept in a new one") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  check_result(tune(file));
  fs::resize_file(file, 9000);
  const std::string damaged = bytes_of(file);
  const Ran best = shell(kBest + std::string(" --cache ") + file.string());
  CHECK(best.code == 0);
  CHECK(contains(best.err, "damaged"));
  CHECK(bytes_of(file) == damaged);
  check_warned(tune(file), "was moved to");
  const auto aside = cache::testing::named(folder.path(), "cache.db.corrupt-");
  REQUIRE(aside.size() == 1);
  CHECK(bytes_of(aside.front()) == damaged);
  CHECK(winners_in(file) == 1);
}

TEST_CASE("what is not our cache is refused with its name and left as it was") {
  const TempFolder folder;
  const fs::path file = folder / "cache.db";
  std::ofstream(file) << "not a database, but somebody's letter";
  const std::string before = bytes_of(file);
  for (const std::string& path : {file.string(), folder.path().string()}) {
    const Ran ran = tune(path);
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, path));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
  }
  CHECK(bytes_of(file) == before);
}

TEST_CASE("a driver that refuses is one clear sentence and exit code 4, and plans still work") {
  const TempFolder folder;
  // The measuring worker is the real one; the compiling one would open NVRTC beside that driver.
  const fs::path worker = folder / "worker";
  std::ofstream(worker) << "#!/bin/sh\n"
                           "test \"$2\" = measure && exec " AUTOTUNE_BINARY
                           " \"$@\"\n"
                           "exec " AUTOTUNE_FAKE_WORKER " \"$@\"\n";
  fs::permissions(worker, fs::perms::owner_all);
  struct Refusal {
    const char* fake;
    const char* part;
  };
  for (const Refusal& refusal :
       {Refusal{"init=100", "finds no GPU"}, Refusal{"version=11000", "too old"},
        Refusal{"context=46", "exclusive mode"}, Refusal{"context=214", "ECC"},
        Refusal{"init=999", "does not start"}}) {
    INFO(refusal.fake);
    const std::string machine = fmt::format("FAKE_CUDA={} {}", refusal.fake, kFakeGpu);
    const std::string cache = " --cache " + (folder / "cache.db").string();
    const Ran ran = shell(kTune + cache, machine + "AUTOTUNE_WORKER=" + worker.string() + " ");
    INFO(ran.err);
    CHECK(ran.code == 4);
    CHECK_FALSE(contains(ran.out, "winner"));
    CHECK(contains(ran.err, refusal.part));
    CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
    for (const char* offline : {kPlan, kBest, "devices"}) {
      const Ran still = shell(offline, machine);
      INFO(offline << ": " << still.err);
      CHECK(still.code == 0);
      CHECK_FALSE(still.out.empty());
    }
  }
}

}  // namespace
}  // namespace autotune

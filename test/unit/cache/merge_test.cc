// Stores that are merged: the same rows whatever the order, and however often.
#include <sqlite3.h>

#include "test/support/catch.h"
#include "test/unit/cache/fixture.h"

namespace autotune::cache {
namespace {

using namespace testing;

constexpr const char* kOther = "NVIDIA H100 80GB HBM3 cc=90 sms=132 smem=232448 memory=80GiB";

// All rows in words, without the ids that differ from file to file.
std::string content_of_file(const fs::path& file) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  std::string text;
  for (const char* sql :
       {"SELECT r.uid, d.fingerprint, r.device_name, r.started, r.ended, j.rule, j.configs FROM "
        "run r JOIN device d ON d.id = r.device LEFT JOIN rejected j ON j.run = r.id ORDER BY 1, 6",
        "SELECT p.key, p.lda, p.alpha, d.fingerprint, r.uid, t.config, t.source_hash, t.compiler, "
        "t.time, t.outcome, t.median_us, t.samples, t.log FROM trial t JOIN problem p ON p.id = "
        "t.problem JOIN device d ON d.id = t.device LEFT JOIN run r ON r.id = t.run ORDER BY 1, 4, "
        "6, 7, 8",
        "SELECT p.key, d.fingerprint, t.config, t.compiler, w.lead_percent, w.tie, w.default_us, "
        "r.host FROM winner w JOIN trial t ON t.id = w.trial JOIN problem p ON p.id = w.problem "
        "JOIN device d ON d.id = w.device LEFT JOIN run r ON r.id = t.run ORDER BY 1, 2",
        "SELECT source_hash, arch, compiler, seal, length(image) FROM cubin ORDER BY 1, 2, 3"}) {
    const int code = sqlite3_exec(
        db, sql,
        [](void* to, int columns, char** values, char**) {
          auto& out = *static_cast<std::string*>(to);
          for (int i = 0; i < columns; ++i) out += std::string(values[i] ? values[i] : "-") + "|";
          out += "\n";
          return 0;
        },
        &text, nullptr);
    REQUIRE(code == SQLITE_OK);
    text += "--\n";
  }
  sqlite3_close(db);
  return text;
}

Store opened(const fs::path& file, Access access = Access::read_write) {
  auto store = Store::open(file, access);
  REQUIRE(store);
  return *std::move(store);
}

// A store with a run of its own; its rows overlap with those of other `seed`s, are better here and
// worse there.
void fill(const fs::path& file, int seed) {
  Store store = opened(file);
  const auto run = store.begin_run(
      {kDevice, "NVIDIA H200", "nvrtc 13.0", "13.0", "0.1.0", "{}", fmt::format("host{}", seed)});
  REQUIRE(run);
  for (int i = seed; i < seed + 6; ++i) {
    TrialRecord trial = sample_trial(i);
    trial.run = *run;
    trial.time = 1000 + seed;
    trial.measurement.median_us = 100 + (i * 7 + seed * 13) % 11;
    if ((i + seed) % 5 == 0) {
      trial.outcome = Outcome::faulted;
      trial.log = fmt::format("fault of {}", seed);
    }
    if (i % 2 == 0) trial.problem.lda += 64 * seed;  // the same key, another leading dimension
    REQUIRE(problem_key(trial.problem) == trial.key.problem_key);
    REQUIRE(store.record(trial));
    if (trial.outcome == Outcome::ok) REQUIRE(store.crown({trial, 1.0 * seed, false, 130, 2}));
    REQUIRE(store.put_cubin(sample_cubin_key(i), sample_cubin(i)));
  }
  TrialRecord elsewhere = sample_trial(seed, 64);
  elsewhere.key.device_fingerprint = kOther;
  REQUIRE(store.record(elsewhere));
  REQUIRE(store.crown({elsewhere}));
  REQUIRE(store.end_run(*run, {{"threads", 10 + seed}}));
}

Expected<Merged> merge_into(const fs::path& target, const std::vector<fs::path>& files) {
  std::vector<Store> stores;
  for (const fs::path& file : files) stores.push_back(opened(file, Access::read_only));
  std::vector<const Store*> others;
  for (const Store& store : stores) others.push_back(&store);
  return opened(target).merge(others);
}

std::string merged(const TempFolder& folder, const std::vector<fs::path>& files) {
  const fs::path target =
      folder / fmt::format("merged{}.db", named(folder.path(), "merged").size());
  REQUIRE(merge_into(target, files));
  return content_of_file(target);
}

TEST_CASE("merging does not depend on the order of the files, nor on how often") {
  const TempFolder folder;
  std::vector<fs::path> files;
  for (int seed = 1; seed <= 3; ++seed) {
    files.push_back(folder / fmt::format("{}.db", seed));
    fill(files.back(), seed);
  }
  const std::string once = merged(folder, files);
  CHECK(merged(folder, {files[2], files[1], files[0]}) == once);
  CHECK(merged(folder, {files[1], files[1], files[0], files[2], files[0]}) == once);

  const std::string pair = merged(folder, {files[0], files[1]});
  CHECK(merged(folder, {files[1], files[0]}) == pair);
  // A file's rows in another's place: A into B is B into A.
  fs::copy_file(files[0], folder / "a.db");
  fs::copy_file(files[1], folder / "b.db");
  REQUIRE(merge_into(folder / "a.db", {files[1]}));
  REQUIRE(merge_into(folder / "b.db", {files[0]}));
  CHECK(content_of_file(folder / "a.db") == pair);
  CHECK(content_of_file(folder / "b.db") == pair);
  const auto again = merge_into(folder / "a.db", {files[0], files[1], folder / "b.db"});
  REQUIRE(again);
  CHECK(again->runs + again->trials + again->winners + again->cubins == 0);
  CHECK(content_of_file(folder / "a.db") == pair);
  CHECK(opened(folder / "a.db").verify()->findings.empty());
}

TEST_CASE("the better time wins under each key and brings its run along") {
  const TempFolder folder;
  const auto put = [&](const char* name, double us, const char* host) {
    Store store = opened(folder / name);
    const auto run =
        store.begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "13.0", "0.1.0", "{}", host});
    REQUIRE(run);
    TrialRecord trial = sample_trial(1);
    trial.run = *run;
    trial.measurement.median_us = us;
    REQUIRE(store.record(trial));
    REQUIRE(store.crown({trial, us / 100, false, 0, 0}));
  };
  put("slow.db", 120, "slow host");
  put("fast.db", 90, "fast host");
  for (const auto& [target, other] : {std::pair{"slow.db", "fast.db"}, {"fast.db", "slow.db"}}) {
    fs::copy_file(folder / target, folder / "target.db", fs::copy_options::overwrite_existing);
    REQUIRE(merge_into(folder / "target.db", {folder / other}));
    const auto winner =
        opened(folder / "target.db").winner(sample_trial(1).key.problem_key, kDevice);
    REQUIRE((winner && *winner));
    CHECK((*winner)->trial.measurement.median_us == 90);
    CHECK((*winner)->lead_percent == 0.9);
    const std::string content = content_of_file(folder / "target.db");
    CHECK(content.find("|90.0|") != std::string::npos);
    CHECK(content.find("|120.0|") == std::string::npos);
    CHECK(content.find("|fast host|") != std::string::npos);
    CHECK(content.find("|slow host|") == std::string::npos);
  }
}

TEST_CASE("success stays before failure, and a winner never refers to a failure") {
  const TempFolder folder;
  TrialRecord good = sample_trial(1);
  good.time = 1000;
  TrialRecord bad = good;
  bad.time = 2000;
  bad.outcome = Outcome::faulted;
  {
    Store store = opened(folder / "good.db");
    REQUIRE(store.record(good));
    REQUIRE(store.crown({good}));
    REQUIRE(opened(folder / "bad.db").record(bad));
  }
  CHECK(merged(folder, {folder / "good.db", folder / "bad.db"}) ==
        merged(folder, {folder / "bad.db", folder / "good.db"}));
  const auto winner = opened(folder / "merged0.db").winner(good.key.problem_key, kDevice);
  REQUIRE((winner && *winner));
  CHECK((*winner)->trial.outcome == Outcome::ok);
}

TEST_CASE("cubins come only from a file that nobody else could write, and only sound ones") {
  const TempFolder folder;
  fill(folder / "1.db", 1);
  const auto cubins = [](const fs::path& file) {
    const auto found = opened(file).verify();
    REQUIRE(found);
    return found->cubins;
  };
  REQUIRE(merge_into(folder / "sound.db", {folder / "1.db"}));
  CHECK(cubins(folder / "sound.db") == 6);
  ::chmod((folder / "1.db").c_str(), 0666);
  REQUIRE(merge_into(folder / "distrust.db", {folder / "1.db"}));
  CHECK(cubins(folder / "distrust.db") == 0);
  ::chmod((folder / "1.db").c_str(), 0600);
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open((folder / "1.db").c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, "UPDATE cubin SET registers = 7 WHERE source_hash = 'source2'", nullptr,
                       nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  REQUIRE(merge_into(folder / "damaged.db", {folder / "1.db"}));
  CHECK(cubins(folder / "damaged.db") == 5);
}

TEST_CASE("a file that others can write is given no cubins") {
  const TempFolder folder;
  fill(folder / "1.db", 1);
  opened(folder / "open.db");
  ::chmod((folder / "open.db").c_str(), 0666);
  const auto done = merge_into(folder / "open.db", {folder / "1.db"});
  REQUIRE(done);
  CHECK(done->trials > 0);
  CHECK(done->cubins == 0);
  {
    Store store = opened(folder / "open.db");
    REQUIRE(store.put_cubin(sample_cubin_key(1), sample_cubin(1)));
  }
  CHECK(opened(folder / "open.db").verify()->cubins == 0);
}

TEST_CASE("a damaged cubin of a file that may be written is left out, and the merge goes on") {
  const TempFolder folder;
  fill(folder / "1.db", 1);
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open((folder / "1.db").c_str(), &db) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, "UPDATE cubin SET registers = 7 WHERE source_hash = 'source2'", nullptr,
                       nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
  const Store other = opened(folder / "1.db");
  const auto done = opened(folder / "target.db").merge({&other});
  REQUIRE(done);
  CHECK(done->cubins == 5);
}

TEST_CASE("rows that are as good as each other are told apart by what they say") {
  const TempFolder folder;
  const auto put = [&](const char* name, TrialRecord trial, double lead, int cubin) {
    Store store = opened(folder / name);
    const auto run =
        store.begin_run({kDevice, "NVIDIA H200", "nvrtc 13.0", "13.0", "0.1.0", "{}", name});
    REQUIRE(run);
    trial.run = *run;
    trial.time = trial.time == 0 ? 1000 : trial.time;
    REQUIRE(store.record(trial));
    if (trial.outcome == Outcome::ok) REQUIRE(store.crown({trial, lead, false, 0, 0}));
    REQUIRE(store.put_cubin(sample_cubin_key(1), sample_cubin(cubin)));
  };
  const auto either_way = [&] {
    const std::string text = merged(folder, {folder / "a.db", folder / "b.db"});
    CHECK(merged(folder, {folder / "b.db", folder / "a.db"}) == text);
    for (const char* name : {"a.db", "b.db"}) fs::remove(folder / name);
    return text;
  };
  // The same findings of two runs, other code under one key.
  put("a.db", sample_trial(1), 1, 1);
  put("b.db", sample_trial(1), 1, 2);
  either_way();
  // The slower one has the lesser leading dimension, and a lead that was measured with it.
  TrialRecord slow = sample_trial(1);
  slow.measurement.median_us = 120;
  put("a.db", slow, 1, 1);
  TrialRecord fast = sample_trial(1);
  fast.problem.lda += 64;
  put("b.db", fast, 7, 1);
  const std::string text = either_way();
  CHECK(text.find(fmt::format("|{}|1.0|", slow.problem.lda)) != std::string::npos);
  CHECK(text.find("|7.0|") != std::string::npos);
  // Of two failures the later one stands.
  for (const std::int64_t time : {1000, 2000}) {
    TrialRecord failed = sample_trial(1);
    failed.outcome = Outcome::faulted;
    failed.time = time;
    put(time == 1000 ? "a.db" : "b.db", failed, 0, 1);
  }
  CHECK(either_way().find("|2000|faulted|") != std::string::npos);
}

TEST_CASE("a store is not merged into itself, and an empty one adds nothing") {
  const TempFolder folder;
  fill(folder / "1.db", 1);
  const std::string before = content_of_file(folder / "1.db");
  fs::create_symlink("1.db", folder / "link.db");
  const auto done =
      merge_into(folder / "1.db", {folder / "1.db", folder / "link.db", folder / "nothing.db"});
  REQUIRE(done);
  CHECK(done->trials == 0);
  CHECK(content_of_file(folder / "1.db") == before);
  CHECK_FALSE(fs::exists(folder / "nothing.db"));
}

TEST_CASE("a current winner comes before a faster one of other code, whatever the order") {
  const TempFolder folder;
  TrialRecord current = sample_trial(1);
  current.measurement.median_us = 190;
  TrialRecord stale = current;
  stale.key.source_hash = "of last month";
  stale.measurement.median_us = 188;
  const IsCurrent is_current = [&](const TrialRecord& trial) {
    return trial.key.source_hash == current.key.source_hash;
  };
  const auto crown = [&](const char* name, TrialRecord trial) {
    Store store = opened(folder / name);
    REQUIRE(store.record(trial));
    REQUIRE(store.crown({trial}));
  };
  const auto winner_in = [&](const char* name) {
    return opened(folder / name).winner(current.key.problem_key, kDevice).value()->trial.key;
  };
  crown("current.db", current);
  crown("stale.db", stale);
  for (const auto& [target, source] :
       {std::pair("current.db", "stale.db"), std::pair("stale.db", "current.db")}) {
    const std::string merged = std::string("with ") + target;
    fs::copy_file(folder / target, folder / merged);
    const Store other = opened(folder / source, Access::read_only);
    REQUIRE(opened(folder / merged).merge({&other}, is_current));
    CHECK(winner_in(merged.c_str()) == current.key);
    REQUIRE(
        opened(folder / merged).adopt("uid", {kDevice, "NVIDIA H200"}, 1, {{stale}}, is_current));
    CHECK(winner_in(merged.c_str()) == current.key);
    // Where nobody can tell, the time decides.
    REQUIRE(opened(folder / merged).adopt("uid", {kDevice, "NVIDIA H200"}, 1, {{stale}}));
    CHECK(winner_in(merged.c_str()) == stale.key);
  }
}

TEST_CASE("adopted winners are those of one run, once") {
  const TempFolder folder;
  Store store = opened(folder / "cache.db");
  const RunInfo info{kDevice, "NVIDIA H200", "imported", "", "0.1.0", R"({"import":"x"})", ""};
  std::vector<WinnerRecord> winners = {{sample_trial(1)}, {sample_trial(2, 64)}};
  winners[1].trial.time = 4000;
  const auto first = store.adopt("uid", info, 5000, winners);
  REQUIRE(first);
  CHECK(first->runs == 1);
  CHECK(first->winners == 2);
  CHECK(store.trial(winners[0].trial.key).value()->time == 5000);
  CHECK(store.trial(winners[1].trial.key).value()->time == 4000);
  const std::string content = content_of_file(folder / "cache.db");
  const auto second = store.adopt("uid", info, 6000, winners);
  REQUIRE(second);
  CHECK(second->runs + second->trials + second->winners == 0);
  CHECK(content_of_file(folder / "cache.db") == content);

  TrialRecord better = sample_trial(3);
  better.measurement.median_us = 50;
  REQUIRE(store.adopt("another", info, 7000, {{better}}));
  const auto winner = store.winner(better.key.problem_key, kDevice);
  REQUIRE((winner && *winner));
  CHECK((*winner)->trial.key.config == better.key.config);
}

}  // namespace
}  // namespace autotune::cache

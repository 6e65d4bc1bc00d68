// `autotune cache` between caches and files: merge, export --yaml, import.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "autotune/io/builtin.h"
#include "autotune/io/load.h"
#include "cache/store.h"
#include "kernels/stages.h"
#include "test/support/catch.h"
#include "test/support/older_cache.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using nlohmann::json;
using test::contains;
using test::run;
using test::TempFolder;
namespace fs = std::filesystem;

namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The winner of an m x 4096 x 4096 GEMM on a known GPU.
cache::WinnerRecord winner_of(std::int64_t m, double us, const std::string& slug = "nvidia-h200") {
  Problem problem;
  problem.m = m;
  problem.n = problem.k = 4096;
  problem = *checked(problem);
  const DeviceSpec* device = io::find_device(slug);
  REQUIRE(device);
  const auto config = parse_config("mma:block_m=128,block_n=64", *find_family("gemm"));
  REQUIRE(config);
  cache::WinnerRecord winner;
  winner.trial.problem = problem;
  winner.trial.key = {problem_key(problem), fingerprint(*device), to_string(*config),
                      source_hash(*config, traits_of(problem), *device), "nvrtc 13.0"};
  winner.trial.measurement.median_us = us;
  winner.trial.time = 1'700'000'000;
  return winner;
}

void put(const std::string& file, cache::WinnerRecord winner) {
  auto store = cache::Store::open(file, cache::Access::read_write);
  REQUIRE(store);
  REQUIRE(store->record(winner.trial));
  REQUIRE(store->crown(winner));
}

std::string listed(const std::string& file) {
  const auto ran = run({"cache", "list", "--cache", file});
  REQUIRE(ran.code == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("merge adds what files hold to the cache") {
  const TempFolder folder;
  put(folder / "a.db", winner_of(64, 10));
  put(folder / "a.db", winner_of(128, 20));
  put(folder / "b.db", winner_of(128, 15));
  const auto ran = run({"cache", "merge", folder / "a.db", folder / "b.db", "--cache",
                        folder / "all.db", "--json", folder / "merge.json"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "2 winners"));
  CHECK(json::parse(text_of(folder / "merge.json"))["winners"] == 2);
  REQUIRE(run({"cache", "merge", folder / "b.db", folder / "a.db", "--cache", folder / "other.db"})
              .code == 0);
  CHECK(listed(folder / "all.db") == listed(folder / "other.db"));
  CHECK(contains(listed(folder / "all.db"), " 15.00 us"));
  const std::string before = listed(folder / "all.db");
  const auto again =
      run({"cache", "merge", folder / "a.db", folder / "b.db", "--cache", folder / "all.db"});
  CHECK(contains(again.out, "0 trials, 0 winners"));
  CHECK(listed(folder / "all.db") == before);

  CHECK(run({"cache", "merge", "--cache", folder / "all.db"}).code == 2);
  const auto missing = run({"cache", "merge", folder / "none.db", "--cache", folder / "all.db"});
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "none.db"));
  std::ofstream(folder / "empty.db").flush();
  const auto empty = run({"cache", "merge", folder / "empty.db", "--cache", folder / "new.db"});
  CHECK(empty.code == 2);
  CHECK(contains(empty.err, "empty.db' is empty"));
  CHECK_FALSE(fs::exists(folder / "new.db"));
  std::ofstream(folder / "letter") << "not a database, but somebody's letter";
  CHECK(run({"cache", "merge", folder / "letter", "--cache", folder / "new.db"}).code == 2);
  CHECK_FALSE(fs::exists(folder / "new.db"));
}

TEST_CASE("merge takes a winner of today's kernels before a faster one of other code") {
  const TempFolder folder;
  put(folder / "today.db", winner_of(64, 10));
  cache::WinnerRecord stale = winner_of(64, 9);
  stale.trial.key.source_hash = std::string(64, '0');
  put(folder / "stale.db", stale);
  REQUIRE(run({"cache", "merge", folder / "stale.db", folder / "today.db", "--cache",
               folder / "all.db"})
              .code == 0);
  CHECK(contains(listed(folder / "all.db"), " 10.00 us"));
}

TEST_CASE("merge brings a file of an older version up to date; who reads it is told") {
  const TempFolder folder;
  put(folder / "old.db", winner_of(64, 10));
  test::make_older(folder / "old.db");
  CHECK(contains(run({"cache", "list", "--cache", folder / "old.db"}).err, "older version"));
  REQUIRE(run({"cache", "merge", folder / "old.db", "--cache", folder / "all.db"}).code == 0);
  CHECK(contains(listed(folder / "all.db"), " 10.00 us"));
  CHECK(contains(listed(folder / "old.db"), " 10.00 us"));
}

TEST_CASE("what export writes, import and the loader read") {
  const TempFolder folder;
  put(folder / "a.db", winner_of(64, 10.125));
  put(folder / "a.db", winner_of(128, 20.5));
  put(folder / "a.db", winner_of(64, 11, "nvidia-h100-80gb-hbm3"));
  fs::create_directory(folder / "tuned");
  const auto ran = run({"cache", "export", "--yaml", folder / "tuned", "--cache", folder / "a.db",
                        "--json", folder / "export.json"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(json::parse(text_of(folder / "export.json"))["files"].size() == 2);
  const std::string h200 = folder / "tuned/nvidia-h200.yaml";
  const auto tuned = io::parse_tuned(text_of(h200), h200);
  REQUIRE(tuned);
  CHECK(tuned->device == "NVIDIA H200");
  REQUIRE(tuned->entries.size() == 2);
  CHECK(tuned->entries[0].median_us == 10.125);
  CHECK(fs::exists(folder / "tuned/nvidia-h100-80gb-hbm3.yaml"));
  CHECK(
      run({"cache", "export", "--yaml", "-", "--device", "nvidia-h200", "--cache", folder / "a.db"})
          .out == text_of(h200));

  const auto imported = run({"cache", "import", h200, folder / "tuned/nvidia-h100-80gb-hbm3.yaml",
                             "--cache", folder / "b.db"});
  INFO(imported.err);
  REQUIRE(imported.code == 0);
  CHECK(contains(imported.out, "3 winners, 0 cubins"));
  CHECK(contains(run({"cache", "import", h200, "--cache", folder / "b.db"}).out,
                 "0 runs, 0 trials, 0 winners"));
  fs::create_directory(folder / "again");
  REQUIRE(run({"cache", "export", "--yaml", folder / "again", "--cache", folder / "b.db"}).code ==
          0);
  CHECK(text_of(folder / "again/nvidia-h200.yaml") == text_of(h200));
  // What is imported is an exact answer, and carries no code.
  CHECK(contains(run({"best", "gemm", "--m", "64", "--n", "4096", "--k", "4096", "--device",
                      "nvidia-h200", "--cache", folder / "b.db"})
                     .out,
                 "exact"));
  CHECK(contains(run({"cache", "verify", "--cache", folder / "b.db"}).out, "0 cubins"));
  const auto missing = run({"cache", "verify", "--cache", folder / "c.db"});
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "there is no file "));
}

TEST_CASE("an MLP's winner is exported and imported with both of its configs") {
  const TempFolder folder;
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = 100;
  problem.n = 1536;
  problem.k = 512;
  problem.layout = Layout::nn;
  problem = *checked(problem);
  const auto config = parse_config("mma:block_m=128,block_n=64 + mma:block_m=64,block_n=64",
                                   *find_family("geglu_mlp"));
  REQUIRE(config);
  cache::WinnerRecord winner = winner_of(64, 10);
  winner.trial.problem = problem;
  winner.trial.key.problem_key = problem_key(problem);
  winner.trial.key.config = to_string(*config);
  winner.trial.key.source_hash = source_hash(*config, problem, *io::find_device("nvidia-h200"));
  put(folder / "a.db", winner);
  const std::string file = folder / "a.yaml";
  REQUIRE(run({"cache", "export", "--yaml", file, "--cache", folder / "a.db"}).code == 0);
  CHECK(contains(text_of(file), "tokens: 100, intermediate: 1536, hidden: 512"));
  const auto imported = run({"cache", "import", file, "--cache", folder / "b.db"});
  INFO(imported.err);
  REQUIRE(imported.code == 0);
  const auto best =
      run({"best", "geglu_mlp", "--tokens", "100", "--hidden", "512", "--intermediate", "1536",
           "--layout", "nn", "--device", "nvidia-h200", "--cache", folder / "b.db"});
  CHECK(contains(best.out, to_string(*config)));
  CHECK(contains(best.out, "exact"));
  // What was imported is predicted to need the workspace of the whole.
  auto store = cache::Store::open(folder / "b.db", cache::Access::read_only);
  REQUIRE(store);
  const auto trials = store->trials(problem_key(problem), winner.trial.key.device_fingerprint);
  REQUIRE(trials);
  REQUIRE(trials->size() == 1);
  CHECK(trials->front().predicted.workspace_bytes == kWorkspaceMarkBytes + 100 * 1536 * 2);
}

TEST_CASE("an import never replaces a faster winner") {
  const TempFolder folder;
  put(folder / "slow.db", winner_of(64, 30));
  put(folder / "fast.db", winner_of(64, 10));
  REQUIRE(run({"cache", "export", "--yaml", folder / "slow.yaml", "--cache", folder / "slow.db"})
              .code == 0);
  REQUIRE(run({"cache", "import", folder / "slow.yaml", "--cache", folder / "fast.db"}).code == 0);
  CHECK(contains(listed(folder / "fast.db"), " 10.00 us"));
}

TEST_CASE("export leaves out what no GPU file describes and what the kernels have left behind") {
  const TempFolder folder;
  auto strange = winner_of(64, 10);
  strange.trial.key.device_fingerprint = "Card 9 cc=90 sms=1 smem=232448 memory=1GiB";
  put(folder / "a.db", strange);
  auto stale = winner_of(128, 10);
  stale.trial.key.source_hash = "of last year";
  put(folder / "a.db", stale);
  const auto none =
      run({"cache", "export", "--yaml", folder / "x.yaml", "--cache", folder / "a.db"});
  CHECK(none.code == 1);
  CHECK(contains(none.err, "Card 9"));
  CHECK(contains(none.err, "128x4096x4096 bf16 tn on NVIDIA H200: not exported, for the kernels"));
  CHECK(contains(none.err, stale.trial.key.config));
  CHECK_FALSE(fs::exists(folder / "x.yaml"));
}

TEST_CASE("export of one GPU's winners says nothing of another's") {
  const TempFolder folder;
  put(folder / "a.db", winner_of(64, 10));
  auto elsewhere = winner_of(128, 10, "nvidia-h100-80gb-hbm3");
  elsewhere.trial.key.source_hash = "of last year";
  put(folder / "a.db", elsewhere);
  const auto exported = [&](const std::string& slug) {
    return run({"cache", "export", "--yaml", "-", "--device", slug, "--cache", folder / "a.db"});
  };
  const auto h200 = exported("nvidia-h200");
  CHECK(h200.code == 0);
  CHECK(h200.err.empty());
  CHECK(contains(exported("nvidia-h100-80gb-hbm3").err, "128x4096x4096 bf16 tn on NVIDIA H100"));
}

TEST_CASE("export does not destroy a file that it did not make") {
  const TempFolder folder;
  put(folder / "a.db", winner_of(64, 10));
  std::ofstream(folder / "notes.yaml") << "precious: 1\n";
  const auto refused =
      run({"cache", "export", "--yaml", folder / "notes.yaml", "--cache", folder / "a.db"});
  CHECK(refused.code == 2);
  CHECK(text_of(folder / "notes.yaml") == "precious: 1\n");
  REQUIRE(run({"cache", "export", "--yaml", folder / "a.yaml", "--cache", folder / "a.db"}).code ==
          0);
  put(folder / "a.db", winner_of(64, 9));
  REQUIRE(run({"cache", "export", "--yaml", folder / "a.yaml", "--cache", folder / "a.db"}).code ==
          0);
  CHECK(contains(text_of(folder / "a.yaml"), "median_us: 9"));
  CHECK(run({"cache", "export", "--yaml", folder / "no/such/a.yaml", "--cache", folder / "a.db"})
            .code == 2);
  CHECK(run({"cache", "export", "--cache", folder / "a.db"}).code == 2);
  CHECK(run({"cache", "export", "--yaml", "-", "--json", "-", "--cache", folder / "a.db"}).code ==
        2);
}

TEST_CASE("a file that cannot be imported changes nothing and is named with its line") {
  const TempFolder folder;
  const std::string head = "device: NVIDIA H200\nwinners:\n";
  const std::string good = "  - {family: gemm, m: 64, n: 64, k: 64, config: mma, median_us: 1}\n";
  for (const auto& [text, part] :
       {std::pair<std::string, std::string>{"device: Card 9\nwinners:\n" + good, "Card 9"},
        {head + good + "  - {family: gemm, m: 010, n: 64, k: 64, config: mma, median_us: 1}\n",
         "bad.yaml:4: m: "},
        {head + good + good, "bad.yaml:4: a second winner"},
        {head + "  - {family: gemm, m: 64, n: 64, k: 64, config: 'mma:x=1', median_us: 1}\n",
         "bad.yaml:3: config: "},
        {head + "  - {family: gemm, m: 64, n: 64, k: 64, config: mma, cubin: aa, median_us: 1}\n",
         "unknown key 'cubin'"}}) {
    std::ofstream(folder / "bad.yaml") << text;
    const auto ran = run({"cache", "import", folder / "bad.yaml", "--cache", folder / "a.db"});
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, part));
    CHECK(listed(folder / "a.db") == "No winners.\n");
  }
  CHECK(run({"cache", "import", folder.path().string(), "--cache", folder / "a.db"}).code == 2);
}

TEST_CASE("a config that cannot run is named and not imported") {
  const TempFolder folder;
  const std::string problem = "  - {family: gemm, m: 64, n: 64, k: 64, median_us: 1, config: '";
  std::ofstream(folder / "odd.yaml")
      << "device: NVIDIA H200\nwinners:\n"
      << "  - {family: gemm, m: 128, n: 64, k: 64, median_us: 1, config: mma}\n"
      << problem << "mma:block_m=60'}\n";
  const auto ran = run({"cache", "import", folder / "odd.yaml", "--cache", folder / "a.db"});
  CHECK(ran.code == 0);
  CHECK(contains(ran.err, "64x64x64 bf16 tn: left out"));
  CHECK(contains(ran.err, "mma:block_m=60"));
  CHECK(contains(ran.out, "1 winner"));

  const auto again =
      run({"cache", "import", folder / "odd.yaml", "--cache", folder / "b.db", "--json", "-"});
  const auto left_out = json::parse(again.out)["left_out"];
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0]["file"] == (folder / "odd.yaml").string());
  CHECK(left_out[0]["problem"]["m"] == 64);
  CHECK(left_out[0]["config"].get<std::string>().starts_with("mma:block_m=60,"));
}

TEST_CASE("a cache that is not there is said to be missing, and not made by what only reads it") {
  const TempFolder folder;
  const std::string file = folder / "none.db";
  CHECK(contains(run({"cache", "list", "--cache", file}).err, "there is no cache"));
  CHECK(contains(run({"best", "gemm", "--m", "64", "--n", "64", "--k", "64", "--device",
                      "nvidia-h200", "--cache", file})
                     .err,
                 "there is no cache"));
  const auto removed = run({"cache", "remove", "--all", "--cache", file});
  CHECK(removed.out == "Removed 0 trials.\n");
  CHECK(contains(removed.err, "there is no cache"));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("each action of cache takes what it says and nothing else") {
  const TempFolder folder;
  const std::string file = folder / "a.db";
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"path", "m=1"},
                                             {"list", "m=1", "n=1"},
                                             {"list", "--yaml", "x"},
                                             {"merge", "--all", "x"},
                                             {"import"},
                                             {"verify", "--device", "nvidia-h200"},
                                             {"exchange"}}) {
    std::vector<std::string> whole = {"cache"};
    whole.insert(whole.end(), args.begin(), args.end());
    whole.insert(whole.end(), {"--cache", file});
    INFO(args[0]);
    CHECK(run(whole).code == 2);
  }
}

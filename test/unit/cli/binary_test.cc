// The built executable, as a shell sees it: exit codes and what goes to which stream.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/catch.h"
#include "test/support/shell.h"

using autotune::test::contains;
using autotune::test::Ran;
using autotune::test::shell;
using nlohmann::json;

namespace {

std::filesystem::path scratch() {
  return std::filesystem::temp_directory_path() / ("autotune_cli_" + std::to_string(getpid()));
}

// A suite of three problems: a T4 runs the middle one alone, and without simt nothing runs that.
std::filesystem::path partly_fitting() {
  const std::filesystem::path suite = scratch().string() + ".yaml";
  std::ofstream(suite) << "family: gemm\nproblems:\n"
                       << "  - {m: 64, n: 64, k: 64}\n"
                       << "  - {m: 64, n: 64, k: 64, dtype: fp32, exact_fp32: true}\n"
                       << "  - {m: 128, n: 64, k: 64}\n";
  return suite;
}

// Workers that only pretend, and an H200 for them.
constexpr const char* kFakeGpu =
    "LD_LIBRARY_PATH=" AUTOTUNE_FAKE_CUDA " AUTOTUNE_WORKER=" AUTOTUNE_FAKE_WORKER;

constexpr const char* kSquare = "gemm --m 4096 --n 4096 --k 4096";

}  // namespace

TEST_CASE("exit codes of the executable") {
  CHECK(shell("--version").code == 0);
  CHECK(shell("").code == 2);
  CHECK(shell("plan gemm --m 1e3 --n 1 --k 1 --device nvidia-h200").code == 2);
  CHECK(shell("plan " + std::string(kSquare) + " --device 'NVIDIA H200' --max-smem 16").code == 3);
  CHECK(shell("tune " + std::string(kSquare) + " --device 'NVIDIA Thor'").code == 4);
  CHECK(shell("bench " + std::string(kSquare) + " --device 'NVIDIA Thor'").code == 4);
  CHECK(shell("plan " + std::string(kSquare) + " --device 'NVIDIA Thor'").code == 0);
}

TEST_CASE("Jetson AGX Thor: everything that is planned for it fits it") {
  const Ran ran = shell("plan " + std::string(kSquare) + " --device 'NVIDIA Thor' --json -");
  REQUIRE(ran.code == 0);
  const json plan = json::parse(ran.out);
  CHECK(plan["survivors"].get<int>() > 0);
  CHECK(plan["rejected"].contains("shared_memory"));
  for (const json& row : plan["ranked"]) {
    CHECK(row["resources"]["smem_bytes"].get<int>() <= 232448);
  }
}

TEST_CASE("compiling without a compiler is said in one sentence, with its own exit code") {
  const Ran ran = shell("plan " + std::string(kSquare) + " --device nvidia-h200 -q --compile 1",
                        "AUTOTUNE_NVRTC=/no/such/folder");
  CHECK(ran.code == 4);
  INFO(ran.err);
  CHECK(ran.err.starts_with("autotune: "));
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
}

TEST_CASE("JSON goes to a file, or is refused before any work is done") {
  const std::filesystem::path file = scratch().string() + ".json";
  const Ran ran =
      shell("plan " + std::string(kSquare) + " --device nvidia-h200 --json " + file.string());
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "survivors"));
  std::ifstream stream(file);
  CHECK(json::parse(stream)["schema"] == 1);
  // Wrong input after the file was named leaves what it held.
  CHECK(shell("plan gemm --m 0 --n 1 --k 1 --json " + file.string()).code == 2);
  CHECK(std::filesystem::file_size(file) > 0);
  std::filesystem::remove(file);
  CHECK(shell("plan gemm --m 0 --n 1 --k 1 --json " + file.string()).code == 2);
  CHECK_FALSE(std::filesystem::exists(file));

  const Ran refused = shell("plan " + std::string(kSquare) +
                            " --device nvidia-h200 --json /no/such/folder/plan.json");
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, "/no/such/folder/plan.json"));
}

TEST_CASE("the cache's commands on a cache of their own") {
  const std::filesystem::path folder = scratch();
  const std::string file = (folder / "cache.db").string();
  const std::string option = " --cache " + file;
  CHECK(shell("cache path" + option).out == file + "\n");
  CHECK(shell("cache path", "AUTOTUNE_CACHE=" + file).out == file + "\n");
  const Ran none = shell("cache list" + option);
  CHECK(none.out == "No winners.\n");
  CHECK(contains(none.err, "there is no cache " + file + " yet"));
  CHECK(shell("cache list m=1" + option).out == "No winner matches 'm=1'.\n");
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(shell("cache remove" + option).code == 2);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "winners.yaml")
      << "device: NVIDIA H200\nwinners:\n"
      << "  - {family: gemm, m: 64, n: 64, k: 64, config: mma, median_us: 1}\n";
  CHECK(shell("cache import " + (folder / "winners.yaml").string() + option).code == 0);
  CHECK(shell("cache remove --all" + option).out == "Removed 1 trial.\n");
  const Ran sound = shell("cache verify" + option + " --json -");
  CHECK(sound.code == 0);
  CHECK(json::parse(sound.out)["findings"].empty());
  CHECK(shell("cache burn" + option).code == 2);
  CHECK(shell("cache path m=1" + option).code == 2);
  CHECK(shell("cache list --all" + option).code == 2);
  CHECK(shell("cache list --cache " + folder.string()).code != 0);

  std::ofstream(file, std::ios::trunc) << "not a database, but somebody's letter";
  const Ran foreign = shell("cache list" + option);
  CHECK(foreign.code != 0);
  CHECK(contains(foreign.err, file));
  // Named by hand it is a slip, not a cache to go on without.
  const Ran best = shell("best " + std::string(kSquare) + " --device nvidia-h200" + option);
  CHECK(best.code == 2);
  CHECK(contains(best.err, file));
  std::filesystem::remove_all(folder);
}

TEST_CASE("bench times the other problems of a suite where nothing fits one") {
  const std::filesystem::path suite = partly_fitting();
  const Ran ran =
      shell("bench --suite " + suite.string() + " --exclude simt --cache /no/such/cache --json -",
            kFakeGpu);
  INFO(ran.err);
  CHECK(ran.code == 3);
  const json rows = json::parse(ran.out)["rows"];
  REQUIRE(rows.size() == 3);
  CHECK(rows[1]["config"].is_null());
  CHECK(contains(rows[1]["error"], "excluded"));
  for (const int timed : {0, 2}) {
    CHECK(rows[timed]["error"].is_null());
    CHECK(rows[timed]["median_us"] > 0);
  }
  std::filesystem::remove(suite);
}

TEST_CASE("a bundle is made of the other problems of a suite where nothing fits one") {
  const std::filesystem::path suite = partly_fitting();
  const std::filesystem::path folder = scratch();
  std::filesystem::create_directories(folder);
  // That the rest is begun shows in the compiler that it lacks.
  const Ran ran = shell("bundle --suite " + suite.string() + " --device tesla-t4 --cache " +
                            (folder / "cache.db").string() + " -o " + (folder / "t4").string(),
                        "AUTOTUNE_NVRTC=/no/such/folder");
  INFO(ran.err);
  CHECK(ran.code == 4);
  CHECK(contains(ran.out, "compiling simt"));
  CHECK(contains(ran.err, "warning: no config of gemm fits 128x64x64 bf16 tn on Tesla T4"));
  const Ran none =
      shell("bundle gemm --m 64 --n 64 --k 64 --device tesla-t4 -o " + (folder / "t4").string());
  CHECK(none.code == 3);
  std::filesystem::remove_all(folder);
  std::filesystem::remove(suite);
}

TEST_CASE("sweep -v tells of every config") {
  const std::filesystem::path folder = scratch();
  const auto sweep = [&](const std::string& more) {
    return shell("sweep gemm --m 64 --n 64 --k 64 --dtype fp32 --exact-fp32 --trials 5 --cache " +
                     (folder / "c.db").string() + " -o " + (folder / "data").string() + more,
                 kFakeGpu);
  };
  const Ran ran = sweep(" -v");
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 5);
  CHECK(contains(ran.err, " ok 1.0"));
  CHECK(contains(ran.err, " of the reference\n"));
  std::filesystem::remove_all(folder);
  CHECK(sweep("").err.empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a sweep's folder that cannot be one is wrong input") {
  const std::filesystem::path file = scratch().string() + ".data";
  std::ofstream(file) << "text";
  const Ran ran =
      shell("sweep gemm --m 64 --n 64 --k 64 --cache /no/such/cache -o " + file.string(), kFakeGpu);
  CHECK(ran.code == 2);
  CHECK(contains(ran.err, "autotune: --output: " + file.string() + ": Not a directory\n"));
  CHECK(std::filesystem::file_size(file) == 4);
  std::filesystem::remove(file);
}

TEST_CASE("scripts tell what they do where they are asked for help") {
  for (const auto& entry : std::filesystem::directory_iterator(AUTOTUNE_SOURCE_DIR "/scripts")) {
    const std::filesystem::path& script = entry.path();
    if (script.extension() != ".sh" || access(script.c_str(), X_OK) != 0) continue;
    INFO(script);
    std::ifstream file(script);
    std::string line;
    std::getline(file, line);
    std::getline(file, line);
    for (const char* flag : {" -h", " --help"}) {
      const Ran ran = autotune::test::run_command("bash " + script.string() + flag);
      CHECK(ran.code == 0);
      CHECK(ran.err.empty());
      CHECK(ran.out.starts_with(line.substr(2) + "\n"));
      CHECK_FALSE(contains(ran.out, "#"));
    }
  }
}

TEST_CASE("a worker's role is checked") {
  CHECK(shell("worker knit").code == 2);
  CHECK(shell("worker measure --device x").code == 2);
}

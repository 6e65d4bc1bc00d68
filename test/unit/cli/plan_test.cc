// Plans and explanations of GPUs that need not be here.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using nlohmann::json;
using test::contains;
using test::Ran;
using test::TempFolder;

namespace {

std::vector<std::string> square(const std::string& command, const std::string& device,
                                std::vector<std::string> more = {}) {
  std::vector<std::string> args = {command, "gemm", "--m",  "4096",     "--n",
                                   "4096",  "--k",  "4096", "--device", device};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

json plan_json(const std::string& device, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = square("plan", device, more);
  args.insert(args.end(), {"--json", "-"});
  const Ran ran = test::run(args);
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  return json::parse(ran.out);
}

}  // namespace

TEST_CASE("a plan's counts add up, and what it ranks fits") {
  const json plan = plan_json("nvidia-h200");
  CHECK(plan["schema"] == 1);
  CHECK(plan["device"] == "NVIDIA H200");
  std::int64_t rejected = 0;
  for (const auto& [rule, count] : plan["rejected"].items()) rejected += count.get<std::int64_t>();
  CHECK(plan["generated"] == plan["survivors"].get<std::int64_t>() + rejected);
  REQUIRE(plan["ranked"].size() == 10);
  CHECK(plan["ranked"][0]["config"] == plan["default_config"]);
  double before = 0;
  for (const json& row : plan["ranked"]) {
    CHECK(row["predicted_us"].get<double>() >= before);
    before = row["predicted_us"];
    CHECK(row["resources"]["smem_bytes"].get<int>() <= 232448);
    CHECK(row["resources"]["threads"].get<int>() <= 1024);
    CHECK(row["resources"]["blocks_per_sm"].get<int>() >= 1);
  }
}

TEST_CASE("text has the funnel, the default config and the ten best") {
  const Ran ran = test::run(square("plan", "NVIDIA H200"));
  INFO(ran.err);
  CHECK(ran.code == 0);
  for (const char* part : {"generated", "survivors", "Default", "predicted", "blocks/SM"}) {
    CHECK(contains(ran.out, part));
  }
}

TEST_CASE("the funnel that people see adds up as well") {
  const Ran ran = test::run(
      {"plan", "gemm", "--m", "1", "--n", "4096", "--k", "4096", "--device", "nvidia-h200"});
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "same_launch"));
  std::istringstream lines(ran.out);
  std::int64_t left = 0;
  bool ended = false;
  for (std::string line; !ended && std::getline(lines, line);) {
    if (!line.starts_with("  ")) continue;  // the title
    line.erase(std::remove(line.begin(), line.end(), ','), line.end());
    std::istringstream words(line);
    std::string name;
    std::int64_t count = 0;
    if (!(words >> name >> count)) continue;
    ended = name == "survivors";
    left += ended ? -count : count;
  }
  CHECK(ended);
  CHECK(left == 0);
}

TEST_CASE("what is ranked is ten compiled codes, not one in ten orders of tiles") {
  const json plan = plan_json("nvidia-h200");
  std::set<std::string> codes;
  for (const json& row : plan["ranked"]) {
    const std::string config = row["config"];
    codes.insert(config.substr(0, config.find(",raster=")));
  }
  CHECK(codes.size() == 10);
}

TEST_CASE("explain names what is tried in place of a config that launches the same") {
  // With a single row of tiles their order makes no difference.
  const auto thin = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"explain", "gemm", "--m",      "1",           "--n",    "4096",
                                     "--k",     "4096", "--device", "nvidia-h200", "--json", "-"};
    args.insert(args.end(), more.begin(), more.end());
    const Ran ran = test::run(args);
    CHECK(ran.code == 0);
    return json::parse(ran.out);
  };
  const json tried = thin({});
  CHECK(tried["tried_instead"].is_null());
  std::string other = tried["config"];
  const std::string end = "swizzle=1";
  REQUIRE(other.ends_with(end));
  other.replace(other.size() - end.size(), end.size(), "swizzle=4");
  const json same = thin({"--config", other});
  CHECK(same["config"] == other);
  CHECK(same["tried_instead"] == tried["config"]);
}

TEST_CASE("--json - leaves stdout to the document and -q leaves one line") {
  const Ran both = test::run(square("plan", "nvidia-h200", {"--json", "-"}));
  CHECK(contains(both.err, "survivors"));
  CHECK_FALSE(json::parse(both.out).empty());
  const Ran quiet = test::run(square("plan", "nvidia-h200", {"-q"}));
  CHECK(quiet.out == json::parse(both.out)["default_config"].get<std::string>() + "\n");
  CHECK(quiet.err.empty());
}

TEST_CASE("large shared memory: the user's cap acts as the limit") {
  const json capped = plan_json("nvidia-h200", {"--max-smem", "32768"});
  CHECK(capped["rejected"].contains("user_cap"));
  for (const json& row : capped["ranked"]) {
    CHECK(row["resources"]["smem_bytes"].get<int>() <= 32768);
  }
  setenv("AUTOTUNE_MAX_SMEM", "32768", 1);
  CHECK(plan_json("nvidia-h200") == capped);
  CHECK(plan_json("nvidia-h200", {"--max-smem", "200000"})["max_smem"] == 200000);
  setenv("AUTOTUNE_MAX_SMEM", "", 1);
  CHECK(plan_json("nvidia-h200")["max_smem"].is_null());
  unsetenv("AUTOTUNE_MAX_SMEM");
}

TEST_CASE(
    "large shared memory: a cap below everything is 'nothing fits', with what rejected how many") {
  const Ran ran = test::run(square("plan", "nvidia-h200", {"--max-smem", "16"}));
  CHECK(ran.code == 3);
  CHECK(contains(ran.err, "autotune: "));
  CHECK(contains(ran.out, "user_cap"));
  CHECK(contains(ran.err, "were rejected by user_cap"));
  CHECK_FALSE(contains(ran.out, "Default config"));

  const json row = json::parse(
      test::run(square("plan", "nvidia-h200", {"--max-smem", "16", "--json", "-"})).out);
  std::int64_t rejected = 0;
  for (const auto& [rule, count] : row["rejected"].items()) rejected += count.get<std::int64_t>();
  CHECK(rejected > 0);
  CHECK(row["generated"] == rejected);
  CHECK(row["survivors"] == 0);
  CHECK(row["default_config"].is_null());
  CHECK_FALSE(row["error"].is_null());
}

TEST_CASE("without a family, only commands that take a suite offer one") {
  const std::string families = "name a kernel family (gemm, geglu, geglu_mlp)";
  CHECK(test::run({"explain"}).err == "autotune: " + families + "\n");
  CHECK(test::run({"plan"}).err == "autotune: " + families + " or --suite NAME|FILE\n");
}

TEST_CASE("explain takes configs that no space holds: 16 x 2048 x 16") {
  const Ran ran = test::run(
      square("explain", "nvidia-h200",
             {"--config", "mma:block_m=16,block_n=2048,block_k=16,stages=2", "--json", "-"}));
  INFO(ran.err);
  CHECK(ran.code == 3);
  const json explained = json::parse(ran.out);
  CHECK(explained["fits"] == false);
  CHECK_FALSE(explained["verdicts"].empty());
  CHECK_FALSE(explained["nearest"].is_null());
  // Two stages of (16 + 2048) x 16 elements of 2 bytes.
  CHECK(contains(ran.err, "132,096"));
  CHECK(contains(ran.err, "Does not fit:"));
}

TEST_CASE("large shared memory: explain prints the sum, the limit and the nearest that fits") {
  const Ran ran = test::run(
      square("explain", "nvidia-h200",
             {"--config", "mma:block_m=16,block_n=2048,block_k=64,stages=2", "--json", "-"}));
  INFO(ran.err);
  CHECK(ran.code == 3);
  const json explained = json::parse(ran.out);
  CHECK(explained["fits"] == false);
  // Two stages of (16 + 2048) x 64 elements of 2 bytes.
  CHECK(explained["resources"]["smem_bytes"].get<int>() >= 2 * (16 + 2048) * 64 * 2);
  CHECK(contains(ran.err,
                 "out of resource: shared memory, required 528384 bytes, limit 232448 bytes "
                 "(NVIDIA H200, opt-in per block)"));
  CHECK(contains(ran.err, "Nearest config that fits"));
  const Ran nearest =
      test::run(square("explain", "nvidia-h200", {"--config", explained["nearest"]}));
  CHECK(nearest.code == 0);
  CHECK(contains(nearest.out, "Fits."));
}

TEST_CASE("explain sums what a gated fp32 block of 16 x 2048 x 16 needs to the byte") {
  const auto explain = [](const std::string& config) {
    return test::run({"explain", "geglu", "--m", "4096", "--n", "4096", "--k", "4096", "--dtype",
                      "fp32", "--layout", "tt", "--device", "nvidia-h200", "--config", config,
                      "--json", "-"});
  };
  const Ran ran = explain("simt:block_m=16,block_n=2048,block_k=16,stages=2");
  INFO(ran.err);
  CHECK(ran.code == 3);
  const json explained = json::parse(ran.out);
  CHECK(explained["fits"] == false);
  CHECK(explained["resources"]["smem_bytes"] == 526336);
  const json& terms = explained["terms"]["smem"];
  REQUIRE(terms.size() == 1);
  CHECK(terms[0]["expression"] == "2 stages x (16 + 2 x 2048) x 16 x 4 bytes");
  CHECK(terms[0]["value"] == 2 * (16 + 2 * 2048) * 16 * 4);
  const auto& verdicts = explained["verdicts"];
  const auto memory = std::find_if(verdicts.begin(), verdicts.end(), [](const json& verdict) {
    return verdict["rule"] == "shared_memory";
  });
  REQUIRE(memory != verdicts.end());
  CHECK((*memory)["required"] == 526336);
  CHECK((*memory)["limit"] == 232448);
  CHECK(contains(ran.err, "Shared memory per block: 526,336 bytes of 232,448"));
  CHECK(contains(ran.err,
                 "out of resource: shared memory, required 526336 bytes, limit 232448 bytes "
                 "(NVIDIA H200, opt-in per block)"));

  CHECK(contains(ran.err, "Nearest config that fits"));
  const std::string nearest = explained["nearest"];
  CHECK(nearest.starts_with("simt:"));
  const Ran fitting = explain(nearest);
  CHECK(fitting.code == 0);
  CHECK(json::parse(fitting.out)["fits"] == true);
  CHECK(json::parse(fitting.out)["resources"]["smem_bytes"] <= 232448);
}

TEST_CASE("Jetson AGX Thor is planned for without one") {
  const json plan = plan_json("NVIDIA Thor");
  CHECK(plan["device"] == "NVIDIA Thor");
  CHECK(plan["survivors"].get<int>() > 0);
}

TEST_CASE("configs excluded by pattern are counted and gone") {
  const json plan = plan_json(
      "nvidia-h200", {"--exclude", "mma:stages=2,block_m=*", "--exclude", "mma:block_n=256"});
  CHECK(plan["rejected"]["excluded"].get<int>() > 0);
  for (const json& row : plan["ranked"]) {
    const std::string config = row["config"];
    if (!config.starts_with("mma:")) continue;
    CHECK_FALSE(contains(config, "stages=2,"));
    CHECK_FALSE(contains(config, "block_n=256"));
  }
}

TEST_CASE("a suite's plan has a row for each problem") {
  const Ran ran = test::run({"plan", "--suite", "gemm", "--device", "nvidia-h200", "--json", "-"});
  INFO(ran.err);
  CHECK(ran.code == 0);
  const json plan = json::parse(ran.out);
  REQUIRE(plan["rows"].size() > 5);
  for (const json& row : plan["rows"]) CHECK(row["survivors"].get<int>() > 0);
}

TEST_CASE("best without an entry is the plan's default, said so") {
  const json plan = plan_json("nvidia-a100-sxm4-80gb");
  const Ran ran = test::run(square("best", "nvidia-a100-sxm4-80gb",
                                   {"--cache", "/no/such/folder/cache.db", "--json", "-"}));
  INFO(ran.err);
  CHECK(ran.code == 0);
  const json best = json::parse(ran.out);
  CHECK(best["match"] == "default");
  CHECK(best["config"] == plan["default_config"]);
}

TEST_CASE("best tells a time that was measured with more SMs than are asked for") {
  const auto best = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--cache", "/no/such/folder/cache.db"});
    return test::run(square("best", "nvidia-h200", more));
  };
  const json whole = json::parse(best({"--json", "-"}).out);
  CHECK(whole["median_us"] > 0);
  CHECK(whole["all_sms_us"].is_null());
  CHECK(json::parse(best({"--max-sms", "132", "--json", "-"}).out) == whole);
  CHECK_FALSE(contains(best({}).out, "SMs"));
  const json capped = json::parse(best({"--max-sms", "131", "--json", "-"}).out);
  CHECK(capped["median_us"].is_null());
  CHECK(capped["all_sms_us"] == whole["median_us"]);
  CHECK(contains(best({"--max-sms", "131"}).out, "with all SMs; not measured with --max-sms"));
}

TEST_CASE("plan, explain and best tell of the caps that they keep") {
  for (const char* command : {"plan", "explain", "best"}) {
    INFO(command);
    const Ran ran = test::run(
        square(command, "nvidia-h200", {"--max-sms", "8", "--max-smem", "32768", "--json", "-"}));
    CHECK(contains(
        ran.err, "on NVIDIA H200 with at most 8 SMs and 32,768 bytes of shared memory per block"));
    const json capped = json::parse(ran.out);
    CHECK(capped["max_sms"] == 8);
    CHECK(capped["max_smem"] == 32768);
    const json whole = json::parse(
        test::run(square(command, "nvidia-h200", {"--max-sms", "132", "--json", "-"})).out);
    CHECK(whole["max_sms"].is_null());
    CHECK(whole["max_smem"].is_null());
  }
  // A cap that leaves out no SM changes nothing, also where blocks do not loop over tiles.
  const json a100 = plan_json("nvidia-a100-sxm4-80gb");
  for (const char* sms : {"108", "109", "1000"}) {
    CHECK(plan_json("nvidia-a100-sxm4-80gb", {"--max-sms", sms}) == a100);
  }
  const Ran suite =
      test::run({"plan", "--suite", "gemm", "--device", "nvidia-h200", "--max-sms", "8"});
  CHECK(suite.out.starts_with("gemm on NVIDIA H200 with at most 8 SMs\n"));
}

TEST_CASE("best says whose time it tells") {
  const auto best = [](const std::vector<std::string>& more) {
    std::vector<std::string> args = more;
    args.insert(args.end(), {"--cache", "/no/such/folder/cache.db"});
    return test::run(square("best", "nvidia-h200", args)).out;
  };
  CHECK(contains(best({}), " us when tuned\n"));
  CHECK(contains(best({"--left-out"}), " us when tuned for that problem\n"));
}

TEST_CASE("explain refuses a kernel that is not exact enough for so short a k, as plan does") {
  const std::vector<std::string> problem = {"--m", "128",     "--n",  "128",      "--k",
                                            "8",   "--dtype", "fp32", "--device", "nvidia-h200"};
  const auto with = [&](std::vector<std::string> args, const std::vector<std::string>& more) {
    args.insert(args.end(), problem.begin(), problem.end());
    args.insert(args.end(), more.begin(), more.end());
    return test::run(args);
  };
  const char* const reason = "is exact enough from k = 16 on";
  CHECK(contains(with({"plan", "gemm"}, {}).out, reason));
  for (const char* config : {"mma:block_m=64,block_n=64,block_k=32,stages=2",
                             "wgmma_fp32:block_m=64,block_n=64,stages=2"}) {
    const Ran ran = with({"explain", "gemm"}, {"--config", config});
    CHECK(ran.code == 3);
    CHECK(contains(ran.err, reason));
  }
}

TEST_CASE("with --space only the kernels of the file are said to be left out") {
  const TempFolder folder;
  std::ofstream(folder / "space.yaml")
      << "family: gemm\nkernels:\n  wgmma:\n    block_m: [128]\n    block_n: [128]\n"
         "    block_k: [64]\n    stages: [4]\n    consumers: [2]\n    pingpong: [0]\n"
         "    cluster_m: [1]\n    cluster_n: [1]\n    split_k: [1]\n";
  const Ran ran =
      test::run(square("plan", "nvidia-a100-sxm4-80gb", {"--space", folder / "space.yaml"}));
  CHECK(ran.code == 3);
  CHECK(contains(ran.err, "wgmma: sm_80"));
  CHECK_FALSE(contains(ran.err, "simt"));
}

TEST_CASE("best answers beside a cache whose pages are damaged, and warns") {
  const TempFolder folder;
  const std::string file = folder / "cache.db";
  std::ofstream(folder / "winners.yaml")
      << "device: \"NVIDIA H200\"\nwinners:\n  - {family: gemm, m: 5000, n: 5000, k: 5000, dtype: "
         "bf16, layout: tn, config: \"mma:block_m=128,block_n=64\", median_us: 350.5}\n";
  REQUIRE(test::run({"cache", "import", folder / "winners.yaml", "--cache", file}).code == 0);
  const auto best = [&] {
    return test::run({"best", "gemm", "--m", "5000", "--n", "5000", "--k", "5000", "--device",
                      "nvidia-h200", "--cache", file});
  };
  CHECK(contains(best().out, "exact"));
  // All pages but the first, which says what kind of file it is.
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(4096);
  bytes << std::string(std::filesystem::file_size(file) - 4096, '\x5a');
  bytes.close();
  const Ran ran = best();
  CHECK(ran.code == 0);
  CHECK_FALSE(contains(ran.out, "exact"));
  CHECK(contains(ran.err, "answered without what is stored there"));
}

TEST_CASE("devices lists what is known, with or without a GPU here") {
  const Ran ran = test::run({"devices", "--json", "-"});
  CHECK(ran.code == 0);
  const json devices = json::parse(ran.out);
  bool h200 = false;
  for (const json& device : devices["known"]) h200 = h200 || device["name"] == "NVIDIA H200";
  CHECK(h200);
  CHECK(contains(ran.err, "nvidia-h200"));
}

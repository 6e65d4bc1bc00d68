// Commands on problems that take two kernels.
#include <nlohmann/json.hpp>

#include "autotune/cli/config_choice.h"
#include "autotune/cli/request.h"
#include "autotune/io/builtin.h"
#include "autotune/lookup/ladder.h"
#include "kernels/stages.h"
#include "test/support/catch.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using nlohmann::json;
using test::contains;
using test::Ran;

namespace {

Ran mlp(const std::string& command, const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {command,          "geglu_mlp", "--tokens", "100",
                                   "--hidden",       "512",       "--device", "nvidia-h200",
                                   "--intermediate", "1524"};
  args.insert(args.end(), more.begin(), more.end());
  return test::run(args);
}

json mlp_json(const std::string& command, std::vector<std::string> more = {}, int code = 0) {
  more.insert(more.end(), {"--json", "-"});
  const Ran ran = mlp(command, more);
  INFO(ran.err);
  REQUIRE(ran.code == code);
  return json::parse(ran.out);
}

// The plans of geglu and gemm as they are alone.
json stage_json(const std::string& family, const std::string& n, const std::string& k,
                const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"plan", family, "--m",      "100",         "--n",    n,
                                   "--k",  k,      "--device", "nvidia-h200", "--json", "-"};
  args.insert(args.end(), more.begin(), more.end());
  const Ran ran = test::run(args);
  REQUIRE(ran.code == 0);
  json row = json::parse(ran.out);
  for (const char* key : {"schema", "device", "max_sms", "max_smem"}) row.erase(key);
  return row;
}

}  // namespace

TEST_CASE("an MLP's plan is that of each of its kernels") {
  const json plan = mlp_json("plan");
  CHECK(plan["suite"].is_null());
  REQUIRE(plan["rows"].size() == 2);
  CHECK(plan["rows"][0] == stage_json("geglu", "1524", "512"));
  CHECK(plan["rows"][1] == stage_json("gemm", "512", "1524"));

  const Ran text = mlp("plan");
  CHECK(contains(text.out, "geglu 100x1524x512 bf16 tn on NVIDIA H200"));
  CHECK(contains(text.out, "gemm 100x512x1524 bf16 tn on NVIDIA H200"));
  CHECK(mlp("plan", {"-q"}).out ==
        "geglu 100x1524x512 bf16 tn: " + plan["rows"][0]["default_config"].get<std::string>() +
            "\ngemm 100x512x1524 bf16 tn: " + plan["rows"][1]["default_config"].get<std::string>() +
            "\n");
}

TEST_CASE("what is asked of an MLP holds for the kernel that it is about") {
  const json plan =
      mlp_json("plan", {"--activation", "relu", "--out-dtype", "fp32", "--layout", "nt"});
  const json& gated = plan["rows"][0]["problem"];
  const json& down = plan["rows"][1]["problem"];
  CHECK(gated["activation"] == "relu");
  CHECK(gated["out_dtype"] == "bf16");
  CHECK(gated["layout"] == "nt");
  CHECK_FALSE(down.contains("activation"));
  CHECK(down["out_dtype"] == "fp32");
  CHECK(down["layout"] == "tt");
}

TEST_CASE("configs are excluded from both of an MLP's kernels") {
  // gemv serves the second alone.
  const json plan = mlp_json("plan", {"--exclude", "mma:stages=5", "--exclude", "gemv"});
  for (const json& row : plan["rows"]) {
    CHECK(row["rejected"]["excluded"].get<int>() > 0);
    for (const json& ranked : row["ranked"]) {
      const std::string config = ranked["config"];
      CHECK_FALSE((config.starts_with("mma:") && contains(config, "stages=5,")));
      CHECK_FALSE(config.starts_with("gemv:"));
    }
  }
}

TEST_CASE("a space is for the MLP's kernel of its family") {
  const std::string data = AUTOTUNE_SOURCE_DIR "/test/data/wide/";
  const json usual = mlp_json("plan");
  const json gated = mlp_json("plan", {"--space", data + "geglu_space.yaml"});
  CHECK(gated["rows"][0]["generated"] != usual["rows"][0]["generated"]);
  CHECK(gated["rows"][1] == usual["rows"][1]);
  const json down = mlp_json("plan", {"--space", data + "gemm_space.yaml"});
  CHECK(down["rows"][0] == usual["rows"][0]);
  CHECK(down["rows"][1] ==
        stage_json("gemm", "512", "1524", {"--space", data + "gemm_space.yaml"}));
  const Ran foreign = test::run({"plan", "gemm", "--m", "64", "--n", "64", "--k", "64", "--device",
                                 "nvidia-h200", "--space", data + "geglu_space.yaml"});
  CHECK(foreign.code == 2);
  CHECK(contains(foreign.err, "is of the family geglu, not gemm"));
}

TEST_CASE("explain without a config tells of the default of both kernels") {
  const json plan = mlp_json("plan");
  const json explained = mlp_json("explain");
  REQUIRE(explained["stages"].size() == 2);
  for (const std::size_t i : {0, 1}) {
    CHECK(explained["stages"][i]["config"] == plan["rows"][i]["default_config"]);
    CHECK(explained["stages"][i]["problem"] == plan["rows"][i]["problem"]);
    CHECK(explained["stages"][i]["fits"] == true);
  }
}

TEST_CASE("explain tells of the kernels whose configs it is given") {
  const json one = mlp_json("explain", {"--config", "mma:block_m=64"});
  REQUIRE(one["stages"].size() == 1);
  CHECK(one["stages"][0]["problem"]["family"] == "geglu");
  CHECK(contains(one["stages"][0]["config"], "mma:block_m=64,"));

  const json both = mlp_json("explain", {"--config", "mma:block_m=64 + mma:block_m=32"});
  REQUIRE(both["stages"].size() == 2);
  CHECK(both["stages"][0] == one["stages"][0]);
  CHECK(both["stages"][1]["problem"]["family"] == "gemm");
  CHECK(contains(both["stages"][1]["config"], "mma:block_m=32,"));

  const json large =
      mlp_json("explain", {"--config", "mma + mma:block_m=16,block_n=2048,block_k=64,stages=2"}, 3);
  CHECK(large["stages"][0]["fits"] == true);
  CHECK(large["stages"][1]["fits"] == false);
}

TEST_CASE("explain tells of the kernel whose config it was not given") {
  CHECK(contains(mlp("explain", {"--config", "mma"}).err,
                 "--config is of the first kernel alone; 'mma + CONFIG' explains gemm "
                 "100x512x1524 bf16 tn too\n"));
  CHECK(mlp("explain", {"--config", "mma + mma"}).err.empty());
  CHECK(mlp("explain").err.empty());
}

TEST_CASE("explain -q says which of an MLP's kernels a verdict is about") {
  CHECK(mlp("explain", {"-q"}).out ==
        "geglu 100x1524x512 bf16 tn: Fits.\ngemm 100x512x1524 bf16 tn: Fits.\n");
  CHECK(mlp("explain", {"-q", "--config", "mma:block_m=64"}).out ==
        "geglu 100x1524x512 bf16 tn: Fits.\n");
  CHECK(contains(mlp("explain").out, "\nFits.\n"));
  CHECK(test::run({"explain", "gemm", "--m", "64", "--n", "64", "--k", "64", "--device",
                   "nvidia-h200", "-q"})
            .out == "Fits.\n");
}

TEST_CASE("explain refuses more configs than there are kernels") {
  const Ran three = mlp("explain", {"--config", "mma + mma + mma"});
  CHECK(three.code == 2);
  CHECK(contains(three.err, "--config: 3 configs for a problem that takes 2 kernels"));
  const Ran two = test::run({"explain", "gemm", "--m", "64", "--n", "64", "--k", "64", "--device",
                             "nvidia-h200", "--config", "mma + mma"});
  CHECK(two.code == 2);
  CHECK(contains(two.err, "--config: 2 configs for a problem that takes 1 kernel\n"));
  const Ran half = mlp("explain", {"--config", "mma + "});
  CHECK(half.code == 2);
  CHECK(contains(half.err, "leaves one of its configs empty"));
  const Ran unknown = mlp("explain", {"--config", "mma + mna"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "--config 'mna': family gemm has no kernel 'mna'"));
}

TEST_CASE("plan and explain say that an MLP's kernels fit one by one, but not together") {
  const auto large = [](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> args = {command,    "geglu_mlp",  "--tokens",       "2000000",
                                     "--hidden", "16384",      "--intermediate", "11008",
                                     "--device", "nvidia-h200"};
    args.insert(args.end(), more.begin(), more.end());
    return test::run(args);
  };
  const std::string why =
      "out of resource: device memory, required 176186195968 bytes, limit "
      "150109880320 bytes (NVIDIA H200)";
  const Ran explained = large("explain", {"-q"});
  CHECK(explained.code == 3);
  CHECK(contains(explained.out, "gemm 2000000x16384x11008 bf16 tn: Fits.\n"));
  CHECK(contains(explained.out, "intermediate=11008 bf16 tn: does not fit:\n  " + why + "\n"));
  const json document = json::parse(large("explain", {"--json", "-"}).out);
  CHECK(document["stages"][0]["fits"] == true);
  CHECK(document["stages"][1]["fits"] == true);
  CHECK(document["together"] == why);
  CHECK(mlp_json("explain")["together"].is_null());

  const Ran planned = large("plan", {"--json", "-"});
  CHECK(planned.code == 3);
  CHECK(contains(planned.err, "no config of geglu_mlp fits geglu_mlp tokens=2000000"));
  const json rows = json::parse(planned.out)["rows"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["error"].is_null());
  CHECK(contains(rows[1]["error"], why));
}

TEST_CASE("a ladder of tokens is a problem for each rung") {
  cli::Options options;
  options.family = "geglu_mlp";
  options.tokens = "1..64";
  options.hidden = "512";
  options.intermediate = "1524";
  std::ostringstream out;
  cli::Output output({out, out, 0}, "", 0);
  const auto request = cli::read_request(options, output, cli::Ladder::taken);
  REQUIRE(request);
  const auto rungs = lookup::ladder(1, 64);
  REQUIRE(request->problems.size() == rungs.size());
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    const Problem& problem = request->problems[i];
    CHECK(is_mlp(problem));
    CHECK(problem.m == rungs[i]);
    CHECK(problem.n == 1524);
    CHECK(problem.k == 512);
  }
}

TEST_CASE("best of the suite of MLPs answers each with a config of both kernels") {
  const Ran ran = test::run({"best", "--suite", "geglu_mlp", "--device", "nvidia-h200", "--cache",
                             "/no/such/folder/cache.db", "--json", "-"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  const json best = json::parse(ran.out);
  CHECK(best["suite"] == "geglu_mlp");
  REQUIRE(best["rows"].size() == 7);
  for (const json& row : best["rows"]) {
    const auto config = parse_config(row["config"].get<std::string>(), *find_family("geglu_mlp"));
    CHECK(config);
    CHECK(row["problem"]["tokens"].get<int>() > 0);
    CHECK(row["match"] != "other_device");
  }
}

TEST_CASE("each part of a config is completed by the plan of its own kernel") {
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = 100;
  problem.n = 1524;
  problem.k = 512;
  problem = *checked(problem);
  const DeviceSpec& h200 = *io::find_device("nvidia-h200");
  const auto choose = [&](const std::string& text, const Problem& of) {
    return cli::choose_for("--config", text, of, h200, {});
  };
  const auto both = choose("mma:block_m=64 + mma:block_n=32", problem);
  REQUIRE(both);
  CHECK(stage_of(*both, 0) == *choose("mma:block_m=64", stage_of(problem, 0)));
  CHECK(stage_of(*both, 1) == *choose("mma:block_n=32", stage_of(problem, 1)));
  // Not by the other's, nor by what holds without a plan.
  CHECK_FALSE(stage_of(*both, 1) == *choose("mma:block_n=32", stage_of(problem, 0)));
  for (const char* wrong : {"mma", "mma + mma + mma", "gemv + mma", "mma + mma:blok_n=32"}) {
    CAPTURE(wrong);
    const auto refused = choose(wrong, problem);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::bad_input);
    CHECK(refused.error().message.find("--config ") == 0);
  }
}

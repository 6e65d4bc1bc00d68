// The documents' keys are what other programs read: each is named here.
#include "autotune/io/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "autotune/io/builtin.h"
#include "autotune/io/results.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

using Json = nlohmann::json;

Problem square() {
  Problem problem;
  problem.m = problem.n = problem.k = 64;
  const auto result = checked(problem);
  REQUIRE(result);
  return *result;
}

Problem mlp() {
  Problem problem;
  problem.family = "geglu_mlp";
  problem.m = 100;
  problem.n = 1524;
  problem.k = 512;
  problem.layout = Layout::tt;
  problem.activation = Activation::silu;
  const auto result = checked(problem);
  REQUIRE(result);
  return *result;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;  // nlohmann::json sorts them
}

using Keys = std::vector<std::string>;

TEST_CASE("a problem is an object with every field") {
  PlanJson plan{"NVIDIA H200", std::nullopt, {PlanRowJson{square()}}};
  const Json problem = Json::parse(to_json(plan))["problem"];
  CHECK(keys_of(problem) == Keys{"alpha", "beta", "dtype", "exact_fp32", "family", "k", "layout",
                                 "lda", "ldb", "ldc", "m", "mode", "n", "out_dtype"});
  CHECK(problem["m"] == 64);
  CHECK(problem["dtype"] == "bf16");
  CHECK(problem["layout"] == "tn");
  CHECK(problem["mode"] == "cold");
  CHECK(problem["ldc"] == 64);
}

TEST_CASE("an MLP's dimensions go by their names") {
  PlanJson plan{"NVIDIA H200", std::nullopt, {PlanRowJson{mlp()}}};
  const Json problem = Json::parse(to_json(plan))["problem"];
  CHECK(keys_of(problem) == Keys{"activation", "alpha", "beta", "dtype", "exact_fp32", "family",
                                 "hidden", "intermediate", "layout", "lda", "ldb", "ldc", "mode",
                                 "out_dtype", "tokens"});
  CHECK(problem["tokens"] == 100);
  CHECK(problem["hidden"] == 512);
  CHECK(problem["intermediate"] == 1524);
  CHECK(problem["activation"] == "silu");
}

TEST_CASE("an MLP's result is read back as it was written") {
  const auto config = parse_config("mma:stages=3 + mma:stages=2", *find_family("geglu_mlp"));
  REQUIRE(config);
  TuneRowJson row;
  row.problem = mlp();
  row.winner = to_string(*config);
  row.median_us = 12.5;
  const auto back = parse_results(to_json(TuneJson{"NVIDIA H200", {row}}), "tune.json");
  INFO(message_of(back));
  REQUIRE(back);
  REQUIRE(back->entries.size() == 1);
  CHECK(back->entries[0].problem == mlp());
  CHECK(back->entries[0].config == to_string(*config));
  CHECK(back->entries[0].median_us == 12.5);

  row.winner = "mma:stages=3";
  CHECK_THAT(message_of(parse_results(to_json(TuneJson{"NVIDIA H200", {row}}), "tune.json")),
             HasText("row 1: 'mma:stages=3': a config of geglu_mlp is two"));
}

TEST_CASE("plan, for one problem and for a suite") {
  PlanRowJson row;
  row.problem = square();
  row.generated = 10;
  row.rejected = {{"shared_memory", 3}, {"threads", 2}};
  row.survivors = 5;
  row.default_config = "mma:a=1";
  row.ranked = {{"mma:a=1", 1.5, 2048, 128, 96, 4}};
  PlanJson plan{"NVIDIA H200", std::nullopt, {row}};

  Json json = Json::parse(to_json(plan));
  CHECK(keys_of(json) == Keys{"audit", "compile", "default_config", "device", "error", "generated",
                              "max_smem", "max_sms", "problem", "ranked", "rejected", "schema",
                              "survivors"});
  CHECK(json["schema"] == 1);
  CHECK(json["device"] == "NVIDIA H200");
  CHECK(json["generated"] == 10);
  CHECK(json["rejected"] == Json{{"shared_memory", 3}, {"threads", 2}});
  CHECK(json["survivors"] == 5);
  CHECK(json["default_config"] == "mma:a=1");
  CHECK(json["compile"].is_null());
  CHECK(json["audit"].is_null());
  CHECK(json["max_sms"].is_null());
  CHECK(json["max_smem"].is_null());
  CHECK(json["ranked"] == Json::parse(R"([{"config": "mma:a=1", "predicted_us": 1.5, "resources":
                       {"smem_bytes": 2048, "threads": 128, "registers": 96, "blocks_per_sm": 4}}])"));

  plan.suite = "gemm";
  plan.rows[0].compile = CompileJson{7, 1, 2, 3.5};
  plan.rows[0].audit = AuditJson{20, 0, 1};
  json = Json::parse(to_json(plan));
  CHECK(keys_of(json) == Keys{"device", "max_smem", "max_sms", "rows", "schema", "suite"});
  CHECK(json["rows"][0]["compile"] ==
        Json{{"compiled", 7}, {"failed", 1}, {"mismatches", 2}, {"seconds", 3.5}});
  CHECK(json["rows"][0]["audit"] ==
        Json{{"sampled", 20}, {"false_passes", 0}, {"false_rejects", 1}});

  plan.suite = "";  // the stages of one problem
  plan.rows.push_back(row);
  json = Json::parse(to_json(plan));
  CHECK(json["suite"].is_null());
  CHECK(json["rows"].size() == 2);
}

TEST_CASE("explain") {
  ExplainJson explain;
  explain.problem = square();
  explain.config = "mma:a=1";
  explain.smem_bytes = 526336;
  explain.smem_terms = {{"stages", "2 x 3", 6}};
  explain.verdicts = {{"shared_memory", 526336, 232448, "out of resource"}};
  const Json json = Json::parse(to_json(explain));
  CHECK(keys_of(json) == Keys{"config", "device", "fits", "max_smem", "max_sms", "nearest",
                              "nearest_predicted_us", "predicted_us", "problem", "resources",
                              "schema", "terms", "time_terms", "tried_instead", "verdicts"});
  CHECK(json["fits"] == false);
  CHECK(json["resources"]["smem_bytes"] == 526336);
  CHECK(json["terms"]["smem"][0] ==
        Json{{"label", "stages"}, {"expression", "2 x 3"}, {"value", 6}});
  CHECK(json["terms"]["threads"] == Json::array());
  CHECK(json["verdicts"][0] == Json{{"rule", "shared_memory"},
                                    {"required", 526336},
                                    {"limit", 232448},
                                    {"text", "out of resource"}});
  CHECK(json["nearest"].is_null());

  ExplainJson second = explain;
  second.config = "mma:a=2";
  const Json both = Json::parse(to_json(ExplainStagesJson{{explain, second}, ""}));
  CHECK(keys_of(both) == Keys{"schema", "stages", "together"});
  CHECK(both["together"].is_null());
  CHECK(Json::parse(to_json(ExplainStagesJson{{explain, second}, "why"}))["together"] == "why");
  REQUIRE(both["stages"].size() == 2);
  Json first = json;
  first.erase("schema");
  CHECK(both["stages"][0] == first);
  CHECK(both["stages"][1]["config"] == "mma:a=2");
}

TEST_CASE("tune") {
  TuneRowJson row;
  row.problem = square();
  row.trials = {{"ok", 12}, {"faulted", 1}};
  row.failures = {{"mma:a=3", "faulted", ""}, {"mma:a=4", "wrong_result", "element 5"}};
  TuneJson tune{"NVIDIA H200", {row, row}};
  tune.rows[1].winner = "mma:a=1";
  tune.rows[1].median_us = 175.5;
  tune.rows[1].match = "exact";
  const Json json = Json::parse(to_json(tune));
  CHECK(keys_of(json) == Keys{"device", "max_sms", "rows", "schema"});
  CHECK(json["max_sms"].is_null());
  REQUIRE(json["rows"].size() == 2);
  CHECK(keys_of(json["rows"][0]) == Keys{"cancelled", "compiled", "crowned", "default_us", "error",
                                         "failures", "lead_percent", "match", "median_us",
                                         "problem", "reused", "seconds", "tflops", "tie", "trials",
                                         "winner"});
  CHECK(json["rows"][0]["winner"].is_null());
  CHECK(json["rows"][0]["median_us"].is_null());
  CHECK(json["rows"][1]["winner"] == "mma:a=1");
  CHECK(json["rows"][1]["median_us"] == 175.5);
  CHECK(json["rows"][1]["trials"] == Json{{"ok", 12}, {"faulted", 1}});
  CHECK(json["rows"][1]["failures"] ==
        Json{{{"config", "mma:a=3"}, {"outcome", "faulted"}, {"what", nullptr}},
             {{"config", "mma:a=4"}, {"outcome", "wrong_result"}, {"what", "element 5"}}});
}

TEST_CASE("bench, with and without a baseline") {
  BenchRowJson row;
  row.problem = square();
  row.config = "mma:a=1";
  row.median_us = 10;
  row.tflops = 500;
  row.floor_percent = 62.5;
  row.rel_error = 0.001;
  BenchJson bench{"NVIDIA H200", {row, row}, 1.25, 1.25};
  bench.rows[1].baseline = BaselineJson{"cublasLt #3", 12.5, 64};
  bench.rows[1].speedup = 1.25;
  bench.rows[1].speedup_lo = 1.2;
  bench.rows[1].speedup_hi = 1.3;
  const Json json = Json::parse(to_json(bench));
  CHECK(keys_of(json) ==
        Keys{"device", "geomean_speedup", "max_sms", "min_speedup", "rows", "schema"});
  CHECK(json["geomean_speedup"] == 1.25);
  const Json& alone = json["rows"][0];
  CHECK(keys_of(alone) == Keys{"baseline", "config", "error", "family", "floor_measured",
                               "floor_percent", "match", "median_rel_error", "median_us", "problem",
                               "rel_error", "speedup", "speedup_ci95", "tflops"});
  CHECK(alone["family"] == "gemm");
  CHECK(alone["baseline"].is_null());
  CHECK(alone["speedup"].is_null());
  CHECK(alone["speedup_ci95"].is_null());
  const Json& both = json["rows"][1];
  CHECK(both["baseline"] == Json{{"name", "cublasLt #3"}, {"median_us", 12.5}, {"candidates", 64}});
  CHECK(both["speedup"] == 1.25);
  CHECK(both["speedup_ci95"] == Json::array({1.2, 1.3}));
  CHECK(Json::parse(to_json(BenchJson{}))["min_speedup"].is_null());
  bench.max_sms = 8;
  CHECK(Json::parse(to_json(bench))["max_sms"] == 8);
}

TEST_CASE("best") {
  BestRowJson row;
  row.problem = square();
  row.config = "mma:a=1";
  row.match = "default";
  BestJson best{"NVIDIA H200", std::nullopt, {row}};
  const Json json = Json::parse(to_json(best));
  CHECK(keys_of(json) == Keys{"all_sms_us", "config", "device", "error", "from_problem", "match",
                              "max_smem", "max_sms", "median_us", "problem", "schema"});
  CHECK(json["match"] == "default");
  CHECK(json["from_problem"].is_null());
  CHECK(json["median_us"].is_null());
  CHECK(json["all_sms_us"].is_null());
  best.suite = "gemm";
  best.caps = {8, 32768};
  const Json capped = Json::parse(to_json(best));
  CHECK(capped["rows"].size() == 1);
  CHECK(capped["max_sms"] == 8);
  CHECK(capped["max_smem"] == 32768);
}

TEST_CASE("sweep, replay, bundle and calibrate, and what failed before it had a document") {
  SweepRowJson swept;
  swept.problem = square();
  const Json sweep = Json::parse(to_json(SweepJson{"NVIDIA H200", {swept}}));
  CHECK(keys_of(sweep) == Keys{"device", "rows", "schema"});
  CHECK(keys_of(sweep["rows"][0]) ==
        Keys{"best", "best_us", "complete", "error", "file", "problem", "seconds", "trials"});
  for (const char* unknown : {"best", "best_us", "error", "file"}) {
    CHECK(sweep["rows"][0][unknown].is_null());
  }
  ReplayRowJson replayed;
  replayed.problem = square();
  replayed.median = {HUGE_VAL, 1.25};
  replayed.within_3 = 2;
  const Json replay = Json::parse(to_json(ReplayJson{{replayed}}));
  CHECK(keys_of(replay) == Keys{"rows", "schema"});
  CHECK(keys_of(replay["rows"][0]) == Keys{"best_us", "configs", "default_ratio", "device",
                                           "median", "problem", "strategy", "within_1", "within_3",
                                           "worst"});
  CHECK(replay["rows"][0]["median"] == Json::array({nullptr, 1.25}));
  CHECK(replay["rows"][0]["within_1"].is_null());
  CHECK(replay["rows"][0]["within_3"] == 2);

  const BundleRowJson bundled{square(), "mma:a=1", "exact", "", "nvrtc 13.0", true};
  const Json bundle = Json::parse(to_json(BundleJson{"f", "NVIDIA H200", "sm_90a", 3, {bundled}}));
  CHECK(keys_of(bundle) == Keys{"arch", "bytes", "device", "file", "rows", "schema"});
  CHECK(keys_of(bundle["rows"][0]) ==
        Keys{"compiled", "compiler", "config", "error", "from_problem", "match", "problem"});
  CHECK(bundle["rows"][0]["error"].is_null());

  CalibrateJson fitted;
  fitted.errors = {{"fitted", 7, 0.05, 0.1, 1.02}};
  const Json calibrate = Json::parse(to_json(fitted));
  CHECK(keys_of(calibrate) ==
        Keys{"device", "errors", "model", "problems", "read", "schema", "trials"});
  CHECK(keys_of(calibrate["errors"][0]) == Keys{"first_choice", "median", "of", "p90", "trials"});
  CHECK(calibrate["model"].size() == model_coefficients().size());

  CHECK(Json::parse(to_json(ErrorJson{"no"})) == Json{{"schema", 1}, {"error", "no"}});
}

TEST_CASE("devices keep the marks and leave out what is not there") {
  DevicesJson devices;
  devices.present = {{0, *find_device("NVIDIA H200")}};
  devices.known = {*find_device("NVIDIA Thor"), *find_device("Tesla T4")};
  const Json json = Json::parse(to_json(devices));
  CHECK(keys_of(json) == Keys{"known", "present", "schema", "why_none"});
  CHECK(json["present"][0]["index"] == 0);
  CHECK(json["present"][0]["slug"] == "nvidia-h200");
  CHECK(json["present"][0]["measured"]["cold_read_us"].size() == 8);
  CHECK(json["present"][0]["limits"]["smem_optin_per_block"] == 232448);
  CHECK(json["known"][0]["cc"] == "11.0");
  CHECK(json["known"][0]["arch"] == "sm_110a");
  CHECK(json["known"][0]["derived"] == Json::array({"dram_gb_per_s", "fp32_tflops"}));
  CHECK(json["known"][0]["unverified"].size() == 4);
  CHECK(json["known"][1]["tf32_tflops"].is_null());
  CHECK(json["known"][1]["measured"]["launch_us"].is_null());
}

TEST_CASE("cache: path, list, show, verify, remove, merge, export") {
  CHECK(Json::parse(to_json(CachePathJson{"/c.db", true})) ==
        Json{{"schema", 1}, {"path", "/c.db"}, {"exists", true}});
  CachedWinnerJson winner;
  winner.device = "NVIDIA H200";
  winner.problem = square();
  winner.trials = {{"mma:a=1", "faulted", 0, "error 700"}};
  Json list = Json::parse(to_json(CacheListJson{"/c.db", false, {winner}}));
  CHECK(keys_of(list["winners"][0]) == Keys{"compiler", "config", "default_us", "device",
                                            "lead_percent", "median_us", "problem", "source_hash",
                                            "tflops", "tie", "time"});
  list = Json::parse(to_json(CacheListJson{"/c.db", true, {winner}}));
  CHECK(list["winners"][0]["trials"][0] == Json{{"config", "mma:a=1"},
                                                {"outcome", "faulted"},
                                                {"median_us", nullptr},
                                                {"log", "error 700"}});
  const Json verify = Json::parse(to_json(CacheVerifyJson{"/c.db", {"bad row"}, 3, 2, 1}));
  CHECK(verify["sound"] == false);
  CHECK(verify["findings"] == Json::array({"bad row"}));
  CHECK(verify["trials"] == 3);
  CHECK(Json::parse(to_json(CacheRemoveJson{"/c.db", 4}))["removed"] == 4);
  const LeftOutJson left_out{"f.yaml", square(), "mma:a=1"};
  const Json merge =
      Json::parse(to_json(CacheMergeJson{"/c.db", {"f.yaml"}, 1, 2, 3, 4, {left_out}}));
  CHECK(keys_of(merge) ==
        Keys{"cubins", "files", "left_out", "path", "runs", "schema", "trials", "winners"});
  CHECK(keys_of(merge["left_out"][0]) == Keys{"config", "file", "problem"});
  const Json exported = Json::parse(to_json(
      CacheExportJson{"/c.db", {{"NVIDIA H200", "-", 2}}, {{"NVIDIA L4", square(), "mma:a=1"}}}));
  CHECK(keys_of(exported) == Keys{"files", "left_out", "path", "schema"});
  CHECK(keys_of(exported["left_out"][0]) == Keys{"config", "device", "problem"});
  CHECK(exported["left_out"][0]["device"] == "NVIDIA L4");
  CHECK(keys_of(exported["files"][0]) == Keys{"device", "file", "winners"});
}

TEST_CASE("no value makes a document that cannot be parsed") {
  TuneRowJson row;
  row.problem = square();
  row.median_us = std::nan("");
  row.tflops = HUGE_VAL;
  row.error = "ptxas said \xff\xfe \"quoted\"\n";
  const std::string text = to_json(TuneJson{"d", {row}});
  CHECK(text.starts_with("{\n  \"schema\": 1,"));
  CHECK(text.back() == '\n');
  const Json json = Json::parse(text);
  CHECK(json["rows"][0]["median_us"].is_null());
  CHECK(json["rows"][0]["tflops"].is_null());
  CHECK_THAT(json["rows"][0]["error"].get<std::string>(), HasText("\"quoted\""));
}

}  // namespace
}  // namespace autotune::io

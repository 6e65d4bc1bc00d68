// The model section of a GPU's file, written and read back.
#include "autotune/io/model_text.h"

#include <utility>

#include "autotune/io/results.h"
#include "support.h"

namespace autotune::io {
namespace {

const std::string kGpu =
    "# A GPU.\nname: My GPU\ncc: 9.0\nsm_count: 100\nboost_mhz: 1500\nl2_bytes: 1048576\n"
    "dram_bytes: 1073741824\ndram_gb_per_s: 900.5\nfp32_tflops: 20\nf16_bf16_tflops: 300\n"
    "tf32_tflops: 150\n";

Expected<DeviceSpec> parse(const std::string& text) {
  return parse_gpu(text, "g.yaml", all_capabilities());
}

TEST_CASE("a model section is read back as it was written, whatever file it stands in") {
  ModelCoefficients model;
  model.dram_share = 0.75;
  model.turns_step_clocks = 123.4;
  const std::string section = model_text(model, "Fitted to this.\nAnd that.\n");
  CHECK_THAT(section, HasText("# Fitted to this.\n# And that.\nmodel:\n"));
  const std::string once = with_model(kGpu, section);
  CHECK(once.starts_with(kGpu));
  const auto device = parse(once);
  INFO(message_of(device));
  REQUIRE(device);
  CHECK(device->model == model);

  // Again: replaced, comment and all, and what follows stays.
  const std::string tail = "derived: [fp32_tflops]\n";
  model.dram_share = 0.8;
  const std::string twice = with_model(once + tail, model_text(model, "Anew.\n"));
  CHECK(twice.find("And that") == std::string::npos);
  CHECK(twice.ends_with(tail));
  CHECK(twice.starts_with("# A GPU."));
  const auto again = parse(twice);
  INFO(twice);
  REQUIRE(again);
  CHECK(again->model == model);
  CHECK(again->derived.size() == 1);
  CHECK(with_model("", section) == section);

  // With an empty line and a comment within, and another comment behind.
  std::string apart = once;
  apart.insert(apart.find("  l2_share"), "\n# By hand:\n");
  const std::string behind = "\n# What follows.\n" + tail;
  const std::string whole = with_model(apart + behind, model_text(model, "Anew.\n"));
  INFO(whole);
  CHECK(whole.find("By hand") == std::string::npos);
  CHECK(whole.ends_with(behind));
  const auto once_more = parse(whole);
  REQUIRE(once_more);
  CHECK(once_more->model == model);
}

TEST_CASE("results of tune and bench are read back; what is none is refused by row") {
  const auto folder = source_dir() / "test/data/h200";
  for (const char* name : {"tune_gemm.json", "bench_gemm_bf16_tn.json"}) {
    const auto text = read_file(folder / name);
    REQUIRE(text);
    const auto file = parse_results(*text, name);
    INFO(message_of(file));
    REQUIRE(file);
    CHECK(file->device == "NVIDIA H200");
    CHECK(file->entries.size() == 14);
    CHECK(file->entries[2].problem.m == 4096);
    CHECK(file->entries[2].config.starts_with("wgmma:"));
    CHECK(file->entries[2].median_us > 100);
  }
  for (const char* text :
       {"", "no", "[]", "{}", R"({"device": 1, "rows": []})", R"({"device": "x", "rows": {}})"}) {
    INFO(text);
    CHECK(is_bad_input(parse_results(text, "r.json")));
  }
  CHECK_THAT(message_of(parse_results(R"({"device": "x", "max_sms": 4, "rows": []})", "r.json")),
             HasText("r.json: these times are of a part of the GPU"));
  const auto without = parse_results(R"({"device": "x", "rows": [{"median_us": null}]})", "r");
  REQUIRE(without);
  CHECK(without->entries.empty());
  for (const auto& [row, part] :
       {std::pair{R"({"median_us": 1, "config": "mma:"})", "problem is missing"},
        {R"({"median_us": "fast", "config": "mma:", "problem": {}})",
         "median_us is missing or no such value"},
        {R"({"median_us": -1, "config": "mma:", "problem": {}})",
         "median_us is missing or no such"},
        {R"({"median_us": 1, "problem": {}})", "config is missing or no such value"},
        {R"({"median_us": 1, "config": "mma:", "problem": {}, "from_problem": "another"})",
         "this is an answer, not a measurement"},
        {R"({"median_us": 1, "config": "mma:", "problem": {"m": 1.5}})", "family is missing"}}) {
    const std::string text = std::string(R"({"device": "x", "rows": [)") + row + "]}";
    const auto file = parse_results(text, "r.json");
    INFO(text);
    REQUIRE(is_bad_input(file));
    CHECK_THAT(file.error().message, HasText(std::string("r.json: row 1: ") + part));
  }
}

}  // namespace
}  // namespace autotune::io

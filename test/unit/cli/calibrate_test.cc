// calibrate: from files with measured trials to a GPU's model section.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "autotune/io/load.h"
#include "cache/store.h"
#include "kernels/problem.h"
#include "kernels/stages.h"
#include "search/plan.h"
#include "test/support/catch.h"
#include "test/support/tuning.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using test::contains;
using test::h200;
using test::Ran;
using test::run;
using test::TempFolder;

namespace {

const std::string kData = AUTOTUNE_SOURCE_DIR "/test/data/h200/";

std::vector<std::string> calibrate(const std::vector<std::string>& more) {
  std::vector<std::string> args = {"calibrate", "--device", "nvidia-h200"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

enum class Crown { first, none };

// Trials of a GPU whose fp32 units reach 70 % of what is expected; the first is the winner.
void fill(cache::Store& store, Problem problem, Crown crown = Crown::first) {
  problem.exact_fp32 = true;  // else tensor cores serve it as well
  DeviceSpec slow = h200();
  slow.model.ffma_share = 0.7;
  const auto plan = search::make_plan(problem, h200(), *io::default_space("gemm"), {});
  REQUIRE(plan);
  for (std::size_t i = 0; i < plan->survivors.size(); i += 40) {
    const search::Candidate& each = plan->survivors[i];
    cache::WinnerRecord row;
    row.trial.problem = problem;
    row.trial.key = {problem_key(problem), fingerprint(h200()), to_string(each.config),
                     source_hash(each.config, traits_of(problem), h200()), "nvrtc 13.0"};
    row.trial.measurement.median_us =
        search::predict_us(each.config, problem, slow, each.resources, 0);
    row.trial.measurement.samples = 9;
    REQUIRE(store.record(row.trial));
    if (i == 0 && crown == Crown::first) REQUIRE(store.crown(row));
  }
}

}  // namespace

TEST_CASE("winners measured on an H200 give a model section that is nearer to them") {
  const TempFolder folder;
  const std::string file = (folder.path() / "model.yaml").string();
  const Ran ran =
      run(calibrate({"--data", kData + "tune_gemm.json", "--data", kData + "tune_gemm_fp32.json",
                     "--exclude-problem", "m=4096 n=4096 k=4096 dtype=bf16", "-o", file}));
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "each problem left out"));
  CHECK(contains(ran.out, "excluded problems"));
  CHECK(contains(ran.out, "first choice loses"));
  CHECK(contains(ran.err, "hardly which configs win"));
  const auto text = io::read_file(file);
  REQUIRE(text);
  CHECK(contains(*text, "model:\n  launch_us:"));
  // The section alone is written anew as well.
  CHECK(run(calibrate({"--data", kData + "tune_gemm.json", "-o", file})).code == 0);
  CHECK(io::read_file(file).value_or(*text) != *text);
  const Ran told = run(calibrate({"--data", kData + "tune_gemm.json", "--json", "-"}));
  CHECK(told.code == 0);
  const auto document = nlohmann::json::parse(told.out, nullptr, false);
  REQUIRE(document.is_object());
  std::map<std::string, double> median;
  for (const auto& row : document["errors"]) median[row["of"]] = row["median"];
  REQUIRE((median.contains("defaults") && median.contains("fitted")));
  CHECK(median["fitted"] < median["defaults"]);
}

TEST_CASE("what the GPU's coefficients were worth before stands beside the fitted ones") {
  const TempFolder folder;
  const std::string gpu = AUTOTUNE_SOURCE_DIR "/configs/gpus/nvidia-h200.yaml";
  const auto errors_of = [](const std::string& spec) {
    const Ran ran = run({"calibrate", "--gpu-spec", spec, "--data", kData + "tune_gemm.json",
                         "--exclude-problem", "m=4096 n=4096 k=4096"});
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    return ran.out;
  };
  const std::string calibrated = errors_of(gpu);
  CHECK(contains(calibrated, "\n  before this fit "));
  CHECK(contains(calibrated, "\n  before this fit, excluded problems "));
  const std::string text = io::read_file(gpu).value();
  const std::string bare = folder / "bare.yaml";
  std::ofstream(bare) << text.substr(0, text.find("\nmodel:") + 1);
  CHECK_FALSE(contains(errors_of(bare), "before this fit"));
}

TEST_CASE("a cache's trials are fitted, and the GPU's own file takes the section") {
  const TempFolder folder;
  {
    cache::Store store = test::open_store(folder);
    fill(store, test::small_problem(1024));
    fill(store, test::small_problem(3000));
  }
  const std::string gpu = (folder.path() / "gpu.yaml").string();
  std::filesystem::copy_file(AUTOTUNE_SOURCE_DIR "/configs/gpus/nvidia-h200.yaml", gpu);
  const std::string cache = (folder.path() / "cache.db").string();
  const Ran ran = run({"calibrate", "--gpu-spec", gpu, "--data", cache, "-o", gpu});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  const auto device = io::load_gpu(gpu);
  REQUIRE(device);
  CHECK(device->model.ffma_share == Approx(0.7).epsilon(0.05));
  CHECK(device->measured_f16_bf16_tflops == h200().measured_f16_bf16_tflops);
  CHECK(device->cold_read_us.size() == h200().cold_read_us.size());
}

TEST_CASE("trials are fitted whether their problem has a winner or not") {
  const TempFolder folder;
  cache::Store store = test::open_store(folder);
  fill(store, test::small_problem(1024), Crown::none);
  const Ran ran = run(calibrate({"--data", folder / "cache.db"}));
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK(contains(ran.out, "of 1 problem"));
}

TEST_CASE("calibrate says that it leaves MLPs out") {
  const TempFolder folder;
  const Ran alone = run(calibrate({"--data", kData + "bench_geglu_mlp.json"}));
  CHECK(alone.code == 2);
  CHECK(contains(alone.err, "trials of MLPs alone"));
  const Ran both = run(
      calibrate({"--data", kData + "tune_gemm.json", "--data", kData + "bench_geglu_mlp.json"}));
  INFO(both.err);
  CHECK(both.code == 0);
  CHECK(contains(both.out, "trials of MLPs left out"));
  CHECK_FALSE(contains(run(calibrate({"--data", kData + "tune_gemm.json"})).out, "MLP"));

  cache::Store store = test::open_store(folder);
  const Problem mlp = test::small_mlp();
  const auto config = parse_config("simt + simt", *find_family("geglu_mlp"));
  REQUIRE(config);
  cache::TrialRecord trial;
  trial.problem = mlp;
  trial.key = {problem_key(mlp), fingerprint(h200()), to_string(*config),
               source_hash(*config, mlp, h200()), "nvrtc 13.0"};
  trial.measurement.median_us = 1;
  REQUIRE(store.record(trial));
  CHECK(contains(run(calibrate({"--data", folder / "cache.db"})).err, "1 trial of MLPs alone"));
}

TEST_CASE("a trial counts once however often its file is named") {
  const TempFolder folder;
  const std::string sweep = folder / "a.sweep";
  std::filesystem::copy_file(
      AUTOTUNE_SOURCE_DIR "/test/data/wide/gemm_1000x1000x1000_bf16_tn.sweep", sweep);
  std::filesystem::create_symlink(kData + "tune_gemm.json", folder / "link.json");
  std::filesystem::create_hard_link(sweep, folder / "b.sweep");
  const Ran once =
      run(calibrate({"--data", sweep, "--data", kData + "tune_gemm.json", "--json", "-"}));
  INFO(once.err);
  REQUIRE(once.code == 0);
  const Ran often =
      run(calibrate({"--data", sweep, "--data", kData + "tune_gemm.json", "--data", sweep, "--data",
                     folder.str(), "--data", folder / "link.json", "--json", "-"}));
  CHECK(often.code == 0);
  CHECK(often.out == once.out);
}

TEST_CASE("calibrate says how many of the trials it took") {
  const std::string sweep = AUTOTUNE_SOURCE_DIR "/test/data/wide/gemm_1000x1000x1000_bf16_tn.sweep";
  const Ran ran = run(calibrate({"--data", sweep}));
  INFO(ran.out << ran.err);
  CHECK(contains(ran.out, "fitted to 250 trials of 1 problem, of 669 read: "));
  CHECK(contains(ran.out, "evenly from the fastest to the slowest"));
  const Ran json = run(calibrate({"--data", sweep, "--json", "-"}));
  CHECK(contains(json.out, "\"trials\": 250"));
  CHECK(contains(json.out, "\"read\": 669"));
  CHECK_FALSE(contains(run(calibrate({"--data", kData + "tune_gemm.json"})).out, " read: "));
}

TEST_CASE("calibrate without usable data says what to do") {
  const TempFolder folder;
  const auto refused = [&](const std::vector<std::string>& more, const std::string& part) {
    const Ran ran = run(calibrate(more));
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, part));
  };
  refused({}, "--data is missing");
  refused({"--data", "/no/such/file.json"}, "/no/such/file.json");
  refused({"--data", kData + "tune_gemm.json", "--exclude-problem", "m=17"}, "--exclude-problem");
  refused({"--data", kData + "tune_gemm.json", "--exclude-problem", "gemm"}, "excludes all");
  { const cache::Store empty = test::open_store(folder); }
  refused({"--data", (folder.path() / "cache.db").string()}, "autotune tune");
  const Ran other =
      run({"calibrate", "--device", "nvidia-b200", "--data", kData + "tune_gemm.json"});
  CHECK(other.code == 2);
  CHECK(contains(other.err, "measured on NVIDIA H200"));
}

TEST_CASE("calibrate leaves another GPU's file alone") {
  const TempFolder folder;
  const std::string file = folder / "h100.yaml";
  std::filesystem::copy_file(AUTOTUNE_SOURCE_DIR "/configs/gpus/nvidia-h100-80gb-hbm3.yaml", file);
  const auto before = io::read_file(file);
  const Ran ran = run(calibrate({"--data", kData + "tune_gemm.json", "-o", file}));
  CHECK(ran.code == 2);
  CHECK(contains(ran.err, "describes the NVIDIA H100 80GB HBM3, not the NVIDIA H200"));
  CHECK(io::read_file(file).value() == before.value());
}

TEST_CASE("calibrate knows before the fit that it must not or cannot write its section") {
  const TempFolder folder;
  { const cache::Store precious = test::open_store(folder); }
  std::ofstream(folder / "space.yaml") << "family: gemm\n";
  std::filesystem::copy_file(kData + "tune_gemm.json", folder / "tune.json");
  for (const char* name : {"cache.db", "space.yaml", "tune.json", "none/model.yaml"}) {
    const std::string file = folder / name;
    const auto before = io::read_file(file);
    const Ran ran = run(calibrate({"--data", "/no/such/data", "-o", file}));
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, "--output: "));
    CHECK(contains(ran.err, name));
    CHECK(io::read_file(file).value_or("") == before.value_or(""));
  }
  const Ran ran = run(calibrate({"--data", folder / "tune.json", "--json", folder / "tune.json"}));
  CHECK(ran.code == 2);
  CHECK(contains(ran.err, "are the same file"));
}

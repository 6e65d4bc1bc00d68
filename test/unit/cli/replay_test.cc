#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autotune/cli/curve_svg.h"
#include "autotune/io/builtin.h"
#include "autotune/io/sweep.h"
#include "kernels/kernel.h"
#include "search/plan.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using test::contains;

namespace {

namespace fs = std::filesystem;

// Some survivors of an m x 1024 x 1024 problem on an H200, timed as predicted, the third a failure,
// as if a GPU of that name had measured them.
void write_sweep(const test::TempFolder& folder, std::int64_t m,
                 const std::string& name = "NVIDIA H200") {
  io::Sweep sweep;
  sweep.device = "NVIDIA H200";
  sweep.problem.m = m;
  sweep.problem.n = sweep.problem.k = 1024;
  sweep.problem = checked(sweep.problem).value();
  const DeviceSpec& device = *io::find_device(sweep.device);
  const auto plan = search::make_plan(sweep.problem, device, *io::default_space("gemm"), {});
  REQUIRE(plan);
  sweep.reference = plan->default_config().config;
  for (std::size_t i = 0; i < 100; ++i) {
    const search::Candidate& each = plan->survivors[i * 97];
    const bool ok = i != 2;
    sweep.rows.push_back({each.config, ok ? Outcome::ok : Outcome::spilled,
                          ok ? each.predicted_us / 100 : 0, ok ? 100.0 : 0});
  }
  sweep.device = name;
  std::ofstream(folder / io::sweep_file_name(sweep.problem)) << io::sweep_text(sweep);
}

}  // namespace

TEST_CASE("replay runs strategies on data, as a table, JSON and a picture") {
  const test::TempFolder folder;
  write_sweep(folder, 512);
  write_sweep(folder, 1024);
  const auto ran = test::run({"replay", "--data", folder.str(), "--strategy", "exhaustive,random",
                              "--seeds", "3..5", "--trials", "60", "--svg", folder / "curves.svg",
                              "--json", folder / "replay.json"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  CHECK(contains(ran.out, "gemm 512x1024x1024 bf16 tn"));
  CHECK(contains(ran.out, "2 problems, geometric mean"));

  std::ifstream file(folder / "replay.json");
  const auto json = nlohmann::json::parse(file);
  REQUIRE(json["rows"].size() == 4);
  for (const auto& row : json["rows"]) {
    CHECK(row["configs"] == 100);
    CHECK(row["default_ratio"].get<double>() == Approx(1).epsilon(1e-3));
    CHECK(row["median"].size() == 60);
    CHECK(row["worst"].size() == 60);
    if (row["strategy"] == "exhaustive") CHECK(row["within_1"] == 1);
  }
  std::stringstream svg;
  svg << std::ifstream(folder / "curves.svg").rdbuf();
  CHECK(svg.str().starts_with("<svg "));
  CHECK(contains(svg.str(), ">exhaustive</text>"));
  CHECK(contains(svg.str(), ">random</text>"));
}

TEST_CASE("replay says nothing of more configs than it was to replay") {
  const test::TempFolder folder;
  write_sweep(folder, 512);
  const auto lines = [&](const std::string& trials) {
    const auto ran = test::run(
        {"replay", "--data", folder.str(), "--strategy", "exhaustive", "--trials", trials});
    CHECK(ran.code == 0);
    return ran.out.substr(ran.out.find("in all"));
  };
  CHECK(contains(lines("5"), "  -         -         -         -  "));
  CHECK(contains(lines("5"), "  -\n"));
  CHECK_FALSE(contains(lines("48"), "  -"));
}

// What the default strategy is worth on an H200, the model never fitted to the problem at hand.
TEST_CASE("model finds the best of the wide data in 24 configs", "[long]") {
  const test::TempFolder folder;
  const auto ran = test::run({"replay", "--data", AUTOTUNE_SOURCE_DIR "/test/data/wide",
                              "--strategy", "model,random,evolution", "--fit-others", "--seeds",
                              "0..19", "--json", folder / "replay.json"});
  INFO(ran.err);
  REQUIRE(ran.code == 0);
  std::cout << ran.out << std::endl;
  std::ifstream file(folder / "replay.json");
  const auto json = nlohmann::json::parse(file);
  int problems = 0;
  int within_1 = 0;
  double log_of_defaults = 0;
  for (const auto& row : json["rows"]) {
    if (row["strategy"] != "model") continue;
    INFO(row["problem"].dump());
    const auto& median = row["median"];
    REQUIRE_FALSE(median.empty());
    const double after_24 = median[std::min<std::size_t>(median.size(), 24) - 1].get<double>();
    CHECK(after_24 <= 1.03);
    ++problems;
    if (after_24 <= 1.01) ++within_1;
    log_of_defaults += std::log(row["default_ratio"].get<double>());
  }
  CHECK(problems >= 10);
  CHECK(within_1 >= 0.9 * problems);
  CHECK(std::exp(log_of_defaults / problems) <= 1.12);
}

TEST_CASE("a picture that cannot be written is told before the data is read") {
  const test::TempFolder folder;
  const auto ran =
      test::run({"replay", "--data", folder / "none", "--svg", folder / "none/curves.svg"});
  CHECK(ran.code == 2);
  CHECK(contains(ran.err, "--svg: cannot write"));
}

TEST_CASE("replay fits the model to the other problems where that is asked for") {
  const test::TempFolder folder;
  write_sweep(folder, 512);
  const std::vector<std::string> args = {"replay",     "--data",     folder.str(),
                                         "--strategy", "exhaustive", "--fit-others"};
  const auto alone = test::run(args);
  CHECK(alone.code == 2);
  CHECK(contains(alone.err, "--fit-others: the data has no other problem"));
  write_sweep(folder, 1024);
  CHECK(test::run(args).code == 0);
}

TEST_CASE("what replay is told is checked") {
  const test::TempFolder folder;
  write_sweep(folder, 512);
  const auto refused = [&](const std::string& flag, const std::string& value) {
    const auto ran = test::run({"replay", "--data", folder.str(), flag, value});
    INFO(ran.err);
    CHECK(ran.code == 2);
    CHECK(contains(ran.err, flag));
  };
  refused("--strategy", "model,luck");
  refused("--strategy", "model,random,model");
  refused("--seeds", "5..3");
  CHECK(contains(test::run({"replay", "--data", folder.str(), "--seeds", "5..1"}).err,
                 "--seeds: 5..1 is an empty range; the smaller number comes first"));
  refused("--seeds", "x");
  refused("--batch", "0");
  CHECK(contains(test::run({"replay"}).err, "--data"));
  const auto elsewhere = test::run({"replay", "--data", folder.str(), "--device", "tesla-t4"});
  CHECK(elsewhere.code == 2);
  CHECK(contains(elsewhere.err, "was measured on NVIDIA H200, not on Tesla T4"));
  const test::TempFolder foreign;
  write_sweep(foreign, 512, "Foo");
  CHECK(contains(test::run({"replay", "--data", foreign.str()}).err,
                 "gemm_512x1024x1024_bf16_tn.sweep: unknown GPU 'Foo'; --gpu-spec FILE"));
  fs::create_directories(folder / "empty");
  CHECK(contains(test::run({"replay", "--data", folder / "empty"}).err, "no *.sweep"));
}

TEST_CASE("a picture of curves holds a step line for each, and no figure that is none") {
  const double never = std::numeric_limits<double>::infinity();
  const std::string svg = cli::curve_svg("a < b", {{"one", {never, 2, 1.1}, {never, never, 3}}});
  CHECK(contains(svg, "a &lt; b"));
  CHECK(contains(svg, ">one</text>"));
  CHECK_FALSE(contains(svg, "inf"));
  CHECK_FALSE(contains(svg, "nan"));
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++lines;
  CHECK(lines == 2);
}

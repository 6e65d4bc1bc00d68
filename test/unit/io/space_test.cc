#include <set>

#include "autotune/io/builtin.h"
#include "support.h"
#include "test/support/catch.h"

namespace autotune::io {
namespace {

const HostTwin& kernel(std::string_view name) {
  const HostTwin* found = find_kernel(*find_family("gemm"), name);
  REQUIRE(found != nullptr);
  return *found;
}

// A sound space of `mma` with `line` in place of the parameter that it names (or without it, where
// the line is empty), and `extra` after it.
std::string mma_space(const std::string& parameter = "", const std::string& line = "",
                      const std::string& extra = "") {
  std::string text = "family: gemm\nkernels:\n  mma:\n";
  for (const Parameter& each : kernel("mma").parameters()) {
    if (each.name == parameter) {
      text += line;
    } else {
      text += "    " + std::string(each.name) + ": [" + std::to_string(each.fallback) + "]\n";
    }
  }
  return text + extra;
}

std::string error_of(const std::string& text) {
  const auto space = parse_space(text, "s.yaml");
  REQUIRE(is_bad_input(space));
  return space.error().message;
}

TEST_CASE("the built-in GEMM space covers every kernel and parameter, in the kernel's order") {
  const search::Space* space = default_space("gemm");
  REQUIRE(space != nullptr);
  CHECK(space->built_in);
  CHECK(space->origin == "built-in");
  std::set<std::string> covered;
  for (const search::KernelSpace& each : space->kernels) {
    covered.insert(each.kernel);
    const auto parameters = kernel(each.kernel).parameters();
    REQUIRE(each.parameters.size() == parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      CHECK(each.parameters[i].name == parameters[i].name);
      CHECK_FALSE(each.parameters[i].values.empty());
    }
  }
  CHECK(covered.size() == find_family("gemm")->kernels.size());
  CHECK(default_space("conv") == nullptr);
}

TEST_CASE("the built-in space is the file's") {
  const auto file = load_space(source_dir() / "configs/spaces/gemm.yaml");
  REQUIRE(file);
  CHECK_FALSE(file->built_in);
  CHECK_THAT(file->origin, Catch::Matchers::EndsWith("configs/spaces/gemm.yaml"));
  const search::Space& built_in = *default_space("gemm");
  REQUIRE(file->kernels.size() == built_in.kernels.size());
  for (std::size_t k = 0; k < built_in.kernels.size(); ++k) {
    for (std::size_t p = 0; p < built_in.kernels[k].parameters.size(); ++p) {
      CHECK(file->kernels[k].parameters[p].values == built_in.kernels[k].parameters[p].values);
    }
  }
}

TEST_CASE("a space may hold some of the kernels, its parameters in any order") {
  const auto space = parse_space(mma_space("stages", "", "    stages: [3, 2]\n"), "s.yaml");
  REQUIRE(space);
  REQUIRE(space->kernels.size() == 1);
  CHECK(space->kernels[0].kernel == "mma");
  CHECK(space->kernels[0].parameters[3].name == "stages");
  CHECK(space->kernels[0].parameters[3].values == std::vector<std::int32_t>{3, 2});
  CHECK_FALSE(space->built_in);
  CHECK(space->origin == "s.yaml");
}

TEST_CASE("a kernel's space may be several products that share no config") {
  const auto product = [](const std::string& stages, const std::string& block_m) {
    std::string text;
    for (const Parameter& each : kernel("mma").parameters()) {
      const std::string value = each.name == "stages"    ? stages
                                : each.name == "block_m" ? block_m
                                                         : std::to_string(each.fallback);
      text += (text.empty() ? "    - " : "      ") + std::string(each.name) + ": [" + value + "]\n";
    }
    return text;
  };
  const std::string head = "family: gemm\nkernels:\n  mma:\n";
  const auto space = parse_space(head + product("2, 3", "64") + product("3", "128"), "s.yaml");
  REQUIRE(space);
  REQUIRE(space->kernels.size() == 2);
  CHECK((space->kernels[0].kernel == "mma" && space->kernels[1].kernel == "mma"));
  CHECK(space->kernels[0].parameters[3].values == std::vector<std::int32_t>{2, 3});
  CHECK(space->kernels[1].parameters[0].values == std::vector<std::int32_t>{128});
  CHECK(error_of(head + product("2, 3", "64") + product("3", "128, 64")) ==
        "s.yaml:13: kernel mma: some configs are in two of its products; give a parameter values "
        "that the other does not have");
  CHECK_THAT(error_of(head + "    []\n"), HasText("kernel mma"));
}

TEST_CASE("a parameter known at run time only may be left out, any other may not") {
  for (const Parameter& each : kernel("mma").parameters()) {
    INFO(each.name);
    const auto space = parse_space(mma_space(std::string(each.name)), "s.yaml");
    REQUIRE(space.has_value() == each.run_time);
    if (!space) continue;
    const auto given = parse_space(mma_space(), "s.yaml");
    REQUIRE(given);
    for (std::size_t i = 0; i < given->kernels[0].parameters.size(); ++i) {
      CHECK(space->kernels[0].parameters[i].name == given->kernels[0].parameters[i].name);
      CHECK(space->kernels[0].parameters[i].values == given->kernels[0].parameters[i].values);
    }
  }
}

TEST_CASE("mistakes in a space name file and line") {
  CHECK_THAT(error_of(mma_space("stages", "")), HasText("kernel mma lacks the key 'stages'"));
  CHECK(error_of(mma_space("", "", "    depth: [1]\n"))
            .starts_with("s.yaml:13: unknown key 'depth' in kernel mma; accepted: block_m, "));
  CHECK(error_of(mma_space("stages", "    stages: [2, 4, 2]\n")) ==
        "s.yaml:7: stages: 2 is there twice");
  CHECK_THAT(error_of(mma_space("stages", "    stages: []\n")),
             HasText("a list with at least one item"));
  CHECK_THAT(error_of(mma_space("stages", "    stages: [1e1]\n")),
             Catch::Matchers::StartsWith("s.yaml:7: stages: expected a decimal integer from "));
  CHECK(error_of("family: gemm\nkernels:\n  mmma: {}\n")
            .starts_with("s.yaml:3: 'mmma' is not a kernel of gemm; known: "));
  CHECK_THAT(error_of("family: gemm\nkernels: [mma]\n"),
             Catch::Matchers::StartsWith("s.yaml:2: kernels: expected a map"));
  CHECK_THAT(error_of("family: gemm\nkernels: {}\n"),
             Catch::Matchers::StartsWith("s.yaml:2: kernels: expected a map"));
  CHECK_THAT(error_of("family: none\nkernels: {}\n"), HasText("known: gemm"));
}

TEST_CASE("values outside what the kernel can express are refused") {
  const auto parameters = kernel("mma").parameters();
  for (const Parameter& parameter : parameters) {
    const std::string name(parameter.name);
    INFO(name);
    const std::string bounds = std::to_string(parameter.lo) + " to " + std::to_string(parameter.hi);
    for (const std::int64_t value :
         {std::int64_t{parameter.lo} - 1, std::int64_t{parameter.hi} + 1}) {
      const std::string line = "    " + name + ": [" + std::to_string(value) + "]\n";
      CHECK_THAT(error_of(mma_space(name, line)), HasText(bounds));
    }
  }
}

TEST_CASE("a space of more configs than can be enumerated is refused") {
  // Of each parameter so many values, of those known at run time so many.
  const auto space_of = [](const std::string& name, int codes, int orders) {
    std::string text = "family: gemm\nkernels:\n  " + name + ":\n";
    for (const Parameter& parameter : kernel(name).parameters()) {
      text += "    " + std::string(parameter.name) + ": [";
      const int most = parameter.run_time ? orders : codes;
      const int count = std::min(parameter.hi - parameter.lo + 1, most);
      for (int i = 0; i < count; ++i) {
        text += (i == 0 ? "" : ", ") + std::to_string(parameter.lo + i);
      }
      text += "]\n";
    }
    return text;
  };
  CHECK(error_of(space_of("mma", 64, 1)) ==
        "s.yaml:4: kernel mma: more than 100000000 codes; give fewer values");
  CHECK(error_of(space_of("wgmma", 1, 64)) ==
        "s.yaml:4: kernel wgmma: more than 1000 orders of a code; give fewer values");
}

}  // namespace
}  // namespace autotune::io

// The folder that is built in, and the tables made of it.

#include <fstream>

#include "autotune/io/configs_folder.h"
#include "autotune/io/table_writer.h"
#include "support.h"
#include "test/support/catch.h"
#include "test/support/temp_folder.h"

namespace autotune::io {
namespace {

// A copy of configs/ that a test may change.
class ConfigsCopy {
 public:
  ConfigsCopy() {
    std::filesystem::copy(source_dir() / "configs", path(),
                          std::filesystem::copy_options::recursive);
  }
  const std::filesystem::path& path() const { return folder_.path(); }

  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << text;
  }
  std::string error() const {
    const auto configs = load_configs(path());
    REQUIRE(is_bad_input(configs));
    return configs.error().message;
  }

 private:
  test::TempFolder folder_;
};

TEST_CASE("the project's own configs are sound") {
  const auto configs = load_configs(source_dir() / "configs");
  INFO(message_of(configs));
  REQUIRE(configs);
  CHECK(configs->capabilities.size() == 11);
  CHECK(configs->devices.size() == gpu_files());
}

TEST_CASE("bad data in any folder is an error with file and line") {
  SECTION("a suite") {
    ConfigsCopy copy;
    copy.write("suites/bad.yaml", "family: gemm\nproblems:\n  - {m: 1, n: 1, k: 0}\n");
    CHECK_THAT(copy.error(), Catch::Matchers::StartsWith("configs/suites/bad.yaml:3: k: "));
  }
  SECTION("a suite of a family that is not there yet must be YAML") {
    ConfigsCopy copy;
    copy.write("suites/later.yaml", "family: later\nproblems: [\n");
    CHECK_THAT(copy.error(), Catch::Matchers::StartsWith("configs/suites/later.yaml:3: not valid"));
  }
  SECTION("a suite without a family") {
    ConfigsCopy copy;
    copy.write("suites/bad.yaml", "problems: [{m: 1, n: 1, k: 1}]\n");
    CHECK_THAT(copy.error(), HasText("lacks the key 'family'"));
  }
  SECTION("a space") {
    ConfigsCopy copy;
    copy.write("spaces/gemm.yaml", "family: gemm\nkernels:\n  mma:\n    block_m: [x]\n");
    CHECK_THAT(copy.error(), Catch::Matchers::StartsWith("configs/spaces/gemm.yaml:4: block_m: "));
  }
  SECTION("a space under another name") {
    ConfigsCopy copy;
    copy.write("spaces/other.yaml", config_text("spaces/gemm.yaml"));
    CHECK_THAT(copy.error(), HasText("the space of gemm must be named gemm.yaml"));
  }
  SECTION("a GPU under another name") {
    ConfigsCopy copy;
    copy.write("gpus/h200.yaml", config_text("gpus/nvidia-h200.yaml"));
    CHECK_THAT(copy.error(), HasText("the file of NVIDIA H200 must be named nvidia-h200.yaml"));
  }
  SECTION("winners of an unknown GPU") {
    ConfigsCopy copy;
    copy.write("tuned/no-gpu.yaml",
               "device: No GPU\nwinners:\n"
               "  - {family: gemm, m: 1, n: 1, k: 1, config: mma, median_us: 1}\n");
    CHECK_THAT(copy.error(), HasText("'No GPU' has no file in configs/gpus"));
  }
  SECTION("nothing at all") {
    CHECK_THAT(message_of(load_configs(source_dir() / "kernels")), HasText("expected gpus/"));
  }
}

TEST_CASE("tables carry winners, escape text and are plain C++") {
  ConfigsCopy copy;
  copy.write("tuned/nvidia-h200.yaml",
             "device: NVIDIA H200\nwinners:\n"
             "  - {family: gemm, m: 4096, n: 11008, k: 512, dtype: tf32, layout: nt, beta: 0.5,"
             " config: 'mma:stages=4', median_us: 175.25}\n");
  auto configs = load_configs(copy.path());
  INFO(message_of(configs));
  REQUIRE(configs);
  configs->suites = {{"odd", "a: \"x\\\"\n\t\xc3\xa9"}};
  const std::string source = tables_source(*configs);
  CHECK_THAT(source, HasText("row.device = \"NVIDIA H200\";"));
  CHECK_THAT(source, HasText("row.problem.n = 11008;"));
  CHECK_THAT(source, HasText("row.problem.dtype = DType::tf32;"));
  CHECK_THAT(source, HasText("row.problem.out_dtype = DType::fp32;"));
  CHECK_THAT(source, HasText("row.problem.layout = Layout::nt;"));
  CHECK_THAT(source, HasText("row.problem.lda = 4096;"));
  CHECK_THAT(source, HasText("row.problem.beta = 0.5;"));
  CHECK_THAT(source, HasText("row.problem.exact_fp32 = false;"));
  CHECK_THAT(source, HasText("row.problem.activation = Activation::gelu_tanh;"));
  CHECK_THAT(source, HasText("row.config = \"" + configs->tuned[0].entries[0].config + "\";"));
  CHECK_THAT(source, HasText("row.median_us = 175.25;"));
  CHECK_THAT(source, HasText("\"a: \\\"x\\\\\\\"\\n\"\n    \"\\011\\303\\251\""));
}

}  // namespace
}  // namespace autotune::io

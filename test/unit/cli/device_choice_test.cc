#include "autotune/cli/device_choice.h"

#include <filesystem>

#include "autotune/io/builtin.h"
#include "test/support/catch.h"
#include "test/unit/cli/run.h"

using namespace autotune;
using cli::Need;
using test::contains;

namespace {

const cli::GpusHere kNone = fail(ErrorCode::no_gpu, "the NVIDIA driver is not installed");

// A machine with an A30 and an H200 that has one SM less than the table says.
cli::GpusHere two_here() {
  gpu::DetectedGpu first;
  first.spec = *io::find_device("nvidia-a30");
  gpu::DetectedGpu second;
  second.index = 1;
  second.spec = *io::find_device("nvidia-h200");
  second.spec.sm_count = 131;
  return std::vector<gpu::DetectedGpu>{first, second};
}

cli::Options with_device(const std::string& device) {
  cli::Options options;
  options.device = device;
  return options;
}

void check_refused(const std::string& device, Need need, const cli::GpusHere& here, ErrorCode code,
                   const std::string& part) {
  const auto choice = cli::choose_device(with_device(device), need, here);
  REQUIRE_FALSE(choice.has_value());
  INFO(choice.error().message);
  CHECK(choice.error().code == code);
  CHECK(contains(choice.error().message, part));
}

}  // namespace

TEST_CASE("auto is the first GPU here") {
  for (const char* text : {"", "auto"}) {
    const auto choice = cli::choose_device(with_device(text), Need::gpu, two_here());
    REQUIRE(choice.has_value());
    CHECK(choice->spec.name == "NVIDIA A30");
    CHECK(choice->index == 0);
  }
}

TEST_CASE("auto without a GPU asks for a name where a name would do") {
  check_refused("auto", Need::description, kNone, ErrorCode::no_gpu, "--device nvidia-h200");
  check_refused("auto", Need::gpu, kNone, ErrorCode::no_gpu, "driver is not installed");
  check_refused("auto", Need::gpu, kNone, ErrorCode::no_gpu, "'autotune plan'");
}

TEST_CASE("a GPU that is here is taken with the driver's numbers") {
  for (const char* text : {"NVIDIA H200", "nvidia-h200", "1"}) {
    const auto choice = cli::choose_device(with_device(text), Need::description, two_here());
    REQUIRE(choice.has_value());
    CHECK(choice->spec.sm_count == 131);
    CHECK(choice->index == 1);
  }
}

TEST_CASE("a known GPU that is not here is enough for a description only") {
  CHECK(cli::choose_device(with_device("nvidia THOR"), Need::description, kNone).has_value());
  const auto choice = cli::choose_device(with_device("NVIDIA Thor"), Need::description, kNone);
  REQUIRE(choice.has_value());
  CHECK(choice->spec.limits.arch == "sm_110a");
  CHECK_FALSE(choice->index.has_value());
  check_refused("NVIDIA Thor", Need::gpu, kNone, ErrorCode::no_gpu, "driver is not installed");
  check_refused("NVIDIA Thor", Need::gpu, two_here(), ErrorCode::no_gpu, "NVIDIA A30");
}

TEST_CASE("an unknown GPU is bad input, with similar names") {
  check_refused("h200", Need::description, kNone, ErrorCode::bad_input, "nvidia-h200");
  check_refused("NVIDIA H200 NVL Pro", Need::gpu, two_here(), ErrorCode::bad_input, "nvidia-h200");
  check_refused("voodoo", Need::description, kNone, ErrorCode::bad_input, "autotune devices");
}

TEST_CASE("an index counts GPUs that are here") {
  check_refused("2", Need::description, two_here(), ErrorCode::bad_input, "2 GPUs");
  check_refused("0", Need::description, kNone, ErrorCode::no_gpu, "driver is not installed");
  check_refused("99999999999", Need::gpu, two_here(), ErrorCode::bad_input, "--device");
}

TEST_CASE("a GPU from a file") {
  cli::Options options;
  options.gpu_spec = "/no/such/gpu.yaml";
  const auto missing = cli::choose_device(options, Need::description, kNone);
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::bad_input);

  options.gpu_spec = AUTOTUNE_SOURCE_DIR "/configs/gpus/nvidia-h200.yaml";
  const auto choice = cli::choose_device(options, Need::description, two_here());
  REQUIRE(choice.has_value());
  CHECK(choice->spec.name == "NVIDIA H200");
  CHECK(choice->spec.sm_count == 132);
  CHECK(choice->index == 1);

  options.device = "nvidia-a30";
  const auto both = cli::choose_device(options, Need::description, two_here());
  REQUIRE_FALSE(both.has_value());
  CHECK(both.error().code == ErrorCode::bad_input);
}

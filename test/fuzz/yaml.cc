// Every loader of YAML: an error or a value, soon.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/io/load.h"
#include "autotune/io/yaml_node.h"
#include "kernels/problem.h"
#include "test/fuzz/edits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string origin = "fuzz.yaml";
  const auto named = [&](const Error& error) {
    fuzz::require(error.code == ErrorCode::bad_input && error.message.starts_with(origin + ":"));
  };
  const auto tree = io::parse_yaml(text, origin);
  if (!tree) {
    named(tree.error());
    return 0;
  }
  const auto suite = io::parse_suite(text, origin, {});
  if (suite) {
    for (const io::SuiteEntry& entry : suite->entries) {
      fuzz::require(checked(entry.problem) && *checked(entry.problem) == entry.problem);
    }
  } else {
    named(suite.error());
  }
  if (const auto space = io::parse_space(text, origin); !space) named(space.error());
  const auto capabilities = io::parse_compute_capabilities(text, origin);
  if (!capabilities) named(capabilities.error());
  ArchLimits hopper;
  hopper.cc = 90;
  if (const auto gpu = io::parse_gpu(text, origin, {hopper}); !gpu) named(gpu.error());
  return 0;
}

// Config strings, --exclude patterns and dimensions. A config that is accepted has resources,
// whatever its values are.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "autotune/io/builtin.h"
#include "kernels/kernel.h"
#include "kernels/problem.h"
#include "search/check.h"
#include "test/fuzz/edits.h"

namespace autotune {
namespace {

void use(const Config& config) {
  static const DeviceSpec device = *io::find_device("nvidia-h200");
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    Problem problem;
    problem.m = 2147483647;
    problem.n = 1000;
    problem.k = 7;
    problem.dtype = problem.out_dtype = dtype;
    problem = *checked(problem);
    const KernelTraits traits = traits_of(problem);
    if (!config.kernel->unsupported(traits, device).empty()) continue;
    (void)config.kernel->resources(config, problem, device, 0);
    (void)config.kernel->definitions(config, traits, device);
    if (search::check(config, problem, traits, device, {}, nullptr)) continue;
    (void)config.kernel->launch_plan(config, problem, device, {16, 32, 48, 64}, 0);
  }
}

}  // namespace
}  // namespace autotune

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace autotune;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_dimension("--m", text);
  for (const Family* family : families()) {
    const auto config = parse_config(text, *family);
    if (config) {
      const auto again = parse_config(to_string(*config), *family);
      fuzz::require(again && *again == *config);
      use(*config);
    }
    const auto pattern = parse_pattern(text, *family);
    if (pattern && config) (void)matches(*pattern, *config);
  }
  return 0;
}
